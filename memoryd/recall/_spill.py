"""Results that are too long for a host go to a private file; the host gets both ends and the path."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from memoryd.recall._cut import cut_end, cut_start, printable
from memoryd.store import private_directory, write_private

__all__ = ["SPILL_CHARS", "clear_spill", "spill"]

SPILL_CHARS = 10_000
_END = 500


def spill(text: str, directory: Path, *, limit: int = SPILL_CHARS) -> str:
    """``text`` as it is up to ``limit`` characters; above, its first and last 500 around the path of a file that holds it all.

    The file is made in ``directory`` (the profile's ``spill``), readable by its owner alone.  Raises
    :class:`~memoryd.errors.StoreError` where it cannot be written.
    """
    valid = printable(text)
    if len(valid) <= limit:
        return valid
    private_directory(directory)
    path = directory / f"{token_hex(16)}.txt"
    write_private(path, valid.encode())
    left_out = len(valid) - 2 * _END
    return f"{cut_end(valid, _END)}\n[... {left_out} characters left out; the whole text is in {path} ...]\n{cut_start(valid, _END)}"


def clear_spill(directory: Path) -> int:
    """Delete every spilled result, since any of them may hold what is to be forgotten; how many there were."""
    found = [path for path in directory.iterdir() if path.is_file()] if directory.is_dir() else []
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)
