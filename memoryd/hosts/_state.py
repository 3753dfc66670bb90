"""How far a session's transcript was taken: a small file a session, beside the profile's stores.

It is a saving, not a truth: where it is lost the transcript is read from its beginning, and what the log has already is passed over.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from memoryd.core import Value, keyed
from memoryd.errors import StoreError, StoreLocked
from memoryd.store import ProfileStore, lock_file, os_errors, private_directory

__all__ = ["Hidden", "Known", "Place", "Saved", "States"]

_SWEPT = 200


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Place(Value):
    """Where reading goes on.

    ``offset`` is where the record ``id`` begins, the first of a turn that may still grow; ``taken`` of its parts (the user's text, then
    each answer) are recorded already, and after them ``late``: the keyed digest of a message that was recorded before the file had it.
    """

    path: str = ""
    inode: int = 0
    offset: int = 0
    id: str = ""
    taken: int = 0
    late: str = ""


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Saved(Value):
    """What the last checkpoint of a session archived: the transcript's path, its stamp, and the checkpoint."""

    path: str = ""
    inode: int = 0
    size: int = 0
    changed: int = 0
    checkpoint: str = ""


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Known(Value):
    """A session that a hook told of, so that its end is found too where no hook told of that; ``end`` bytes of its transcript were read."""

    session: str = ""
    transcript: str = ""
    cwd: str = ""
    user: str = ""
    agent: str = ""
    end: int = 0


Ranges: TypeAlias = tuple[tuple[int, int], ...]


def _ranges(found: Any) -> Ranges:
    return tuple((int(start), int(end)) for start, end in found)


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Hidden(Value):
    """Where a transcript has what was said while its session was kept out of memory: from each ``start`` to before its ``end``, in
    bytes.  ``goes_on`` where that was so at the last event that was told."""

    path: str = ""
    inode: int = 0
    ranges: Ranges = attrs.field(default=(), converter=_ranges)
    goes_on: bool = False

    def covers(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.ranges)

    def more(self, start: int, end: int, *, goes_on: bool) -> Hidden:
        """With one more range, which continues the last one where they touch."""
        ranges = self.ranges
        if ranges and start <= ranges[-1][1]:
            start, ranges = ranges[-1][0], ranges[:-1]
        return attrs.evolve(self, ranges=(*ranges, (start, end)), goes_on=goes_on)


class States:
    """The files of one profile and host."""

    def __init__(self, profile: ProfileStore, host: str) -> None:
        self._key = profile.key
        self._host = host
        self._kind = "".join(char for char in host if char.isalnum())
        self._directory = profile.directory / "hosts"

    def place(self, session: str) -> Place:
        return cast(Place, self._read(session, "place", Place))

    def saved(self, session: str) -> Saved:
        return cast(Saved, self._read(session, "saved", Saved))

    def hidden(self, session: str) -> Hidden:
        return cast(Hidden, self._read(session, "hidden", Hidden))

    def known(self, session: str) -> Known:
        return cast(Known, self._read(session, "known", Known))

    def sessions(self) -> list[Known]:
        """Those that hooks told of lately, the latest first."""
        found: list[Known] = []
        for path in sorted(self._directory.glob(f"*.{self._kind}-known"), key=_written, reverse=True)[:_SWEPT]:
            with suppress(OSError, ValueError, TypeError):
                found.append(_made(Known, json.loads(path.read_bytes())))
        return found

    def put(self, session: str, value: Place | Saved | Known | Hidden) -> None:
        """Remember ``value``, as far as the disk lets us."""
        with suppress(OSError, StoreError):
            private_directory(self._directory)
            target = self._file(session, type(value).__name__.lower())
            draft = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "wb") as stream:
                    stream.write(json.dumps(attrs.asdict(value)).encode("ascii"))
                os.replace(draft, target)
            except OSError:
                draft.unlink(missing_ok=True)

    @contextmanager
    def taking(self, session: str, patience: float) -> Iterator[None]:
        """One at a time takes turns from a session; raises :class:`~memoryd.errors.StoreLocked` after ``patience`` seconds."""
        private_directory(self._directory)
        path = self._file(session, "lock")
        with os_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_file(descriptor, patience):
                raise StoreLocked(f"{path}: another process is taking this session's turns", path=str(path))
            yield
        finally:
            os.close(descriptor)

    def digest(self, text: str) -> str:
        return keyed(self._key, "late", text.encode("utf-8", "surrogatepass")).hex()

    def _read(self, session: str, kind: str, made: Any) -> Any:
        try:
            return _made(made, json.loads(self._file(session, kind).read_bytes()))
        except (OSError, ValueError, TypeError):
            return made()

    def _file(self, session: str, kind: str) -> Path:
        named = (self._host.encode(), session.encode("utf-8", "surrogatepass"))
        return self._directory / f"{keyed(self._key, 'host session', *named).hex()[:32]}.{self._kind}-{kind}"


def _made(kind: Any, values: Any) -> Any:
    """A value of ``kind``; raises ValueError or TypeError for anything that it would not have written."""
    found, usual = kind(**values), kind()
    for field in attrs.fields(kind):
        if type(getattr(found, field.name)) is not type(getattr(usual, field.name)):
            raise ValueError(field.name)
    return found


def _written(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
