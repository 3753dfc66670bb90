"""A child that accepts turns, delivers them to Honcho, and says so: ``python child_deliver.py HOME SESSION FIRST``.  It never ends by itself."""

from __future__ import annotations

import sys
from itertools import count

import trio

import memoryd

FAST = {"delivery": {"backoff_min": 0.02, "backoff_max": 0.1, "batch_events": 7}, "logging": {"level": "off"}}
HONCHO = {"settle": 0.05, "timeout": 5.0}


def warm() -> None:
    """What each of many forked children would load for itself."""
    from honcho import Honcho  # noqa: F401

    from memoryd.redact import load_redactor
    from memoryd.runtime import open_runtime  # noqa: F401
    from memoryd_honcho import HonchoBackend  # noqa: F401
    from memoryd_local import LocalBackend  # noqa: F401

    load_redactor()


def main(home: str, session: str, first: str) -> None:
    trio.run(deliver, home, session, int(first))


async def deliver(home: str, session: str, first: int) -> None:
    async with memoryd.open_runtime(home, config={"mirrors": ["honcho"], "backends": {"honcho": HONCHO}, **FAST}) as runtime:
        with memoryd.scope(user="ann", session=session):
            for number in count(first):
                accepted = runtime.sync_turn(f"{session} question {number}", f"{session} answer {number}", turn_id=f"{session}-{number}")
                print(number, accepted.state, flush=True)
                await trio.sleep(0.002)


if __name__ == "__main__":
    main(*sys.argv[1:])
