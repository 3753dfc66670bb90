"""How near a profile is to its limits, in words: a warning before, a clear state after."""

from __future__ import annotations

from memoryd.runtime._kernel import Kernel

__all__ = ["WARN_AT", "limit_notes", "quota_share"]

WARN_AT = 0.8
_REFUSED = {
    "quota": "turns are refused: the log has reached log.max_bytes; raise it, or forget something: what that frees is given back",
    "full": "turns are refused: the disk is full or below store.free_floor; free some space",
}


def quota_share(kernel: Kernel) -> float:
    """How much of ``log.max_bytes`` the log uses; 0.0 where there is no such limit."""
    limit = kernel.config.log.max_bytes
    return kernel.journal.used_bytes() / limit if limit and kernel.journal is not None else 0.0


def limit_notes(kernel: Kernel) -> list[str]:
    """What a user should know of the limits of the log."""
    if kernel.journal is None:
        return []
    refusing = kernel.journal.room_problem(0) or kernel.journal.refusing
    if refusing in _REFUSED:
        return [_REFUSED[refusing]]
    share = quota_share(kernel)
    return [f"the log uses {100 * share:.0f} % of log.max_bytes; turns are refused from 100 %"] if share >= WARN_AT else []
