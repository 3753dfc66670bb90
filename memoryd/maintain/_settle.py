"""A runtime in a staging home: what is pending is done, and all is projected, before a profile appears in its place."""

from __future__ import annotations

from pathlib import Path

import trio

from memoryd.core import Config, build_config
from memoryd.runtime import open_runtime
from memoryd.store import profile_directory

__all__ = ["settle"]

_PATIENCE = 600.0
_CATCH_UP = 86_400.0


def settle(home: Path, profile: str, config: Config, second: Path | None = None) -> tuple[str, ...]:
    """Open ``profile`` below ``home`` with the local backend alone, project its log, finish its forgets; what is left to say.

    ``second`` is where its second archive is, as ``gate.fallback_dir`` would name it.
    """
    if not (profile_directory(home, profile) / "log.db").exists():
        return ()  # capture is off in it: there is nothing to project
    own = build_config({
        "backend": "local", "language": config.language, "store.free_floor": 0, "logging.level": "off",
        "gate.fallback_dir": str(second or ""),
    })  # fmt: skip
    return trio.run(_settle, home, profile, own, restrict_keyboard_interrupt_to_checkpoints=True)


async def _settle(home: Path, profile: str, config: Config) -> tuple[str, ...]:
    async with open_runtime(home, profile, config) as runtime:
        await runtime.catch_up(_CATCH_UP)
        with trio.move_on_after(_PATIENCE):
            while (found := (await runtime.status()).log) is not None and found.erasing:
                await trio.sleep(0.02)
        left = (await runtime.status()).log
    return (f"{left.erasing} forgets are pending; they go on when the profile is opened",) if left is not None and left.erasing else ()
