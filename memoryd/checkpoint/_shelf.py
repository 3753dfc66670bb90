"""The archives of a profile: its own, and where one is configured a second one that is used when the first fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from memoryd.checkpoint._archive import Archive
from memoryd.checkpoint._collect import Collected
from memoryd.checkpoint._erase import identities_of_turn
from memoryd.checkpoint._files import ARCHIVE
from memoryd.checkpoint._pages import Digests
from memoryd.checkpoint._reading import bytes_on_disk
from memoryd.checkpoint._select import Erasure
from memoryd.checkpoint._verify import Progress
from memoryd.core import CheckpointInfo, Forgotten, Restored, Verification, from_micros
from memoryd.errors import CheckpointNotFound, MemorydError, StoreError
from memoryd.store import ProfileStore, private_directory

__all__ = ["Shelf"]

T = TypeVar("T")


class Shelf:
    """Opens each archive when it is first needed, and again when its file was replaced or could not be opened before."""

    def __init__(self, profile: ProfileStore, *, fallback_dir: Path | None = None, vfs: str | None = None) -> None:
        self._profile = profile
        self._vfs = vfs
        self._lock = threading.Lock()
        self._open: dict[Path, Archive] = {}
        self.directory = profile.directory
        self.fallback = fallback_dir / profile.directory.name if fallback_dir is not None else None

    def primary(self) -> Archive:
        """The profile's archive; raises :class:`~memoryd.errors.StoreError` where it cannot be opened now."""
        return self._archive(self.directory)

    def second(self) -> Archive:
        """The second archive; raises :class:`~memoryd.errors.StoreError` where none is configured or it cannot be opened now."""
        if self.fallback is None:
            raise StoreError("no second archive is configured; gate.fallback_dir names one")
        return self._archive(self.fallback)

    def identities_of_turn(self, user_text: str, assistant_text: str) -> tuple[bytes, ...]:
        """What stands for a turn in an :class:`Erasure`; the same in both archives, and known without opening one."""
        return identities_of_turn(Digests.of(self._profile.key), user_text, assistant_text)

    def list(self, user: str | None = None, session: str | None = None, limit: int = 100) -> tuple[CheckpointInfo, ...]:
        """Checkpoints of all archives, the most recent attempt first."""
        found = [info for archive in self._existing() for info in archive.list(user, session, limit)]
        return tuple(sorted(found, key=_latest, reverse=True)[: max(0, limit)])

    def show(self, id: str) -> CheckpointInfo:
        return self._first(lambda archive: archive.show(id))

    def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        """As :meth:`Archive.restore`, from the first archive that has it."""
        return self._first(lambda archive: archive.restore(id, attempt=attempt, full=full))

    def verify(self, id: str | None = None, on_progress: Progress | None = None) -> Verification:
        if id is not None:
            return self._first(lambda archive: archive.verify(id, on_progress))
        parts = [archive.verify(None, on_progress) for archive in self._existing()]
        return Verification(
            sum(part.checkpoints for part in parts), sum(part.rows for part in parts), sum(part.erased for part in parts),
            tuple(id for part in parts for id in part.corrupt),
        )  # fmt: skip

    def erase(self, erasure: Erasure) -> Forgotten:
        """Erase in every archive; one that cannot be reached counts as pending: erase again later."""
        erased = pending = quoted = 0
        for directory in self._directories():
            try:
                done = self._archive(directory).erase(erasure)
            except StoreError:
                pending += 1
                continue
            erased, pending, quoted = erased + done.erased, pending + done.pending, quoted + done.quoted
        return Forgotten(erased=erased, pending=pending, quoted=quoted)

    def collect(self, *, at: int) -> Collected:
        parts = [archive.collect(at=at) for archive in self._existing()]
        return Collected(sum(part.pages for part in parts), sum(part.packs for part in parts))

    def usage(self) -> int:
        """Bytes on disk, of all archives; opens none."""
        return sum(bytes_on_disk(directory / ARCHIVE) for directory in self._directories())

    def close(self) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _archive(self, directory: Path) -> Archive:
        with self._lock:
            archive = self._open.get(directory)
            if archive is not None and not archive.is_in_place():
                self._open.pop(directory).close()
                archive = None
            if archive is None:
                private_directory(directory)
                archive = self._open[directory] = Archive.open(self._profile, directory=directory, vfs=self._vfs)
            return archive

    def _directories(self) -> Iterator[Path]:
        """Those that hold an archive: looking never creates one."""
        for directory in (self.directory, self.fallback):
            if directory is not None and (directory / ARCHIVE).exists():
                yield directory

    def _existing(self) -> Iterator[Archive]:
        return map(self._archive, self._directories())

    def _first(self, look: Callable[[Archive], T]) -> T:
        problem: MemorydError | None = None
        for directory in self._directories():
            try:
                return look(self._archive(directory))
            except (CheckpointNotFound, StoreError) as error:
                problem = problem if isinstance(problem, StoreError) else error
        raise problem or CheckpointNotFound("this profile has no checkpoint yet")


def _latest(info: CheckpointInfo) -> datetime:
    return max((attempt.at for attempt in info.attempts), default=from_micros(0))
