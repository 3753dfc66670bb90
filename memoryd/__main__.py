"""``python -m memoryd`` is the command line; with ``_gate`` or ``_spool`` it serves a hook, which must not wait
for the rest to load."""

import sys


def _main() -> int:
    if sys.argv[1:2] == ["_gate"]:
        from memoryd.hosts import gate_main

        return gate_main(sys.argv[2:])
    if sys.argv[1:2] == ["_spool"]:
        from memoryd.hosts import spool_main

        return spool_main()
    from memoryd.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(_main())
