"""``python -m memoryd`` is the command line; with ``_gate`` it is the gate of a hook, which must not wait for the rest to load."""

import sys


def _main() -> int:
    if sys.argv[1:2] == ["_gate"]:
        from memoryd.hosts import gate_main

        return gate_main(sys.argv[2:])
    from memoryd.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(_main())
