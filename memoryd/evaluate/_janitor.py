"""Cleans up after an evaluation that was killed: waits for the end of its parent, then removes what that left.

``python -m memoryd.evaluate._janitor DIRECTORY``, with a pipe as standard input that nobody writes to: its end is the parent's.
Nothing heavy loads before there is something to erase off the machine.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

REMAINS = "profiles/*/remains.json"


def main(scratch: Path) -> None:
    sys.stdin.buffer.read()
    for path in sorted(scratch.glob(REMAINS)):
        _erase(scratch, path)
    shutil.rmtree(scratch, ignore_errors=True)


def _erase(scratch: Path, path: Path) -> None:
    import trio

    from memoryd.evaluate._remains import Remains
    from memoryd.evaluate._trial import erase_remains

    try:
        trio.run(erase_remains, scratch, Remains.load(path))
    except Exception as error:  # noqa: BLE001 - nobody listens any more, and the next one still has to be erased
        print(f"memoryd evaluate: {path.parent.name}: not erased: {type(error).__name__}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
