"""The archive of a profile: transcripts go in by :meth:`Archive.upsert` and come back byte for byte by :meth:`Archive.restore`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.checkpoint._collect import Collected, collect
from memoryd.checkpoint._disown import disown
from memoryd.checkpoint._erase import Erasure, erase, identities_of_turn
from memoryd.checkpoint._files import ARCHIVE, Files, open_files
from memoryd.checkpoint._marks import ErasedMark, erase_marked, erased_marks
from memoryd.checkpoint._pages import Digests
from memoryd.checkpoint._reading import bytes_on_disk, find_checkpoint, list_checkpoints, restore
from memoryd.checkpoint._rekey import rekey_files
from memoryd.checkpoint._upsert import Transcript, Upsert
from memoryd.checkpoint._verify import Progress, verify
from memoryd.core import (
    MAX_LIMIT,
    CheckpointInfo,
    Forgotten,
    Receipt,
    Restored,
    Verification,
    check_name,
    check_text,
    retired,
)
from memoryd.errors import InvalidInput, StoreBroken, StoreLocked
from memoryd.store import ProfileStore

__all__ = ["Archive"]


class Archive:
    """One open ``archive.db``.  Safe to use from any thread and beside other processes; every method blocks.

    All raise :class:`~memoryd.errors.StoreError` for what is wrong with the file, with the path and a remedy.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._inode = _inode(files.path)
        self._writing = threading.Lock()
        self._reading = threading.Lock()

    @classmethod
    def open(cls, profile: ProfileStore, *, directory: Path | None = None, vfs: str | None = None) -> Archive:
        """Open the profile's archive, or its second one in ``directory``; it is created where there is none."""
        return cls(open_files(profile, (directory or profile.directory) / ARCHIVE, vfs))

    @property
    def path(self) -> Path:
        return self._files.path

    def upsert(
        self, rows: Iterable[object], *, user: str, session: str, host: str, trigger: str, at: int, deadline: float,
        source: bytes | None = None,
    ) -> Receipt:  # fmt: skip
        """Archive a transcript and prove it.  ``at``: microseconds since the epoch; ``deadline``: ``time.monotonic()`` seconds.

        ``source`` is the host's own transcript, for ``restore(full=True)``.  Same identities give the same id; only rows that are not
        there yet are stored.  Raises :class:`~memoryd.errors.DeadlineExceeded` with all complete slices kept for the next call,
        :class:`~memoryd.errors.StoreLocked` where another process holds the lock until then.
        """
        check_name("user", user), check_name("session", session), check_text("host", host), check_text("trigger", trigger)
        if source is not None and not isinstance(source, bytes):
            raise InvalidInput("source", f"expected bytes, got {type(source).__name__}")
        transcript = Transcript(list(rows), source, user, session, host, trigger, at)
        with self._exclusive(deadline):
            receipt = Upsert(self._files, transcript, deadline).run()
            if not self.is_in_place():
                path = str(self._files.path)
                raise StoreBroken(f"{path} was removed or replaced while it was open; try again with what is there now", path=path)
            return receipt

    def is_in_place(self) -> bool:
        """False where the file that is open is no longer the one at :attr:`path`: what is written now would be lost with it."""
        return self._inode == _inode(self._files.path)

    def list(self, user: str | None = None, session: str | None = None, limit: int = 100) -> tuple[CheckpointInfo, ...]:
        """Checkpoints with their attempts, the most recent first."""
        with self._reading:
            return list_checkpoints(self._files, user, session, max(0, min(limit, MAX_LIMIT)))

    def show(self, id: str) -> CheckpointInfo:
        """The checkpoint ``id`` (or the only one that begins so, 8 characters at least); raises ``CheckpointNotFound``."""
        with self._reading:
            return find_checkpoint(self._files, id)

    def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        """The rows as given, in canonical JSON and in order, of the newest or the given attempt; raises ``CheckpointNotFound``."""
        with self._reading:
            return restore(self._files, id, attempt, full)

    def verify(self, id: str | None = None, on_progress: Progress | None = None) -> Verification:
        """Recompute every digest, of everything or of one checkpoint."""
        only = bytes.fromhex(self.show(id).id) if id is not None else None
        with self._reading:
            return verify(self._files, only, on_progress)

    def usage(self) -> int:
        """Bytes on disk."""
        return bytes_on_disk(self._files.path)

    def identities_of_turn(self, user_text: str, assistant_text: str) -> tuple[bytes, ...]:
        """What stands for a turn in :meth:`erase`."""
        return identities_of_turn(self._files.digests, user_text, assistant_text)

    def erase(self, erasure: Erasure) -> Forgotten:
        """Erase rows so that no file holds their bytes; doing it again does no harm.  ``pending`` is 1 where a reader still pins old
        pages: erase again later."""
        with self._writing:
            return erase(self._files, erasure)

    def erased_marks(self) -> tuple[ErasedMark, ...]:
        """Everything that stays erased here, for :meth:`erase_marked` of another copy."""
        with self._reading:
            return tuple(erased_marks(self._files))

    def erase_marked(self, marks: Iterable[ErasedMark]) -> int:
        """Erase what stays erased in another copy of this archive; the number of rows."""
        with self._writing:
            return erase_marked(self._files, marks)

    def disown(self) -> int:
        """Rows that are damaged are followed no more, so that the same transcript, archived again, stores them anew; how many."""
        with self._writing:
            return disown(self._files)

    def rekey(self, profile: ProfileStore) -> None:
        """Make every digest anew under the key of ``profile``, whose latest earlier key this archive is under.  Nobody else uses it;
        close it then, and open it under ``profile``."""
        with self._writing:
            rekey_files(self._files, Digests.of(profile.key), lambda digest: retired(profile.key, digest))

    def collect(self, *, at: int, spare_s: float = 86_400.0) -> Collected:
        """Remove what no attempt reaches.  ``at`` is now, in microseconds; unfinished progress younger than ``spare_s`` stays."""
        with self._writing:
            return collect(self._files, at - int(spare_s * 1e6))

    def close(self) -> None:
        """Close the file after what is running has ended.  More than once is fine."""
        with self._writing, self._reading:
            self._files.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _exclusive(self, deadline: float) -> Iterator[None]:
        if not self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            path = str(self._files.path)
            raise StoreLocked(f"{path}: another checkpoint of this process holds the archive until the deadline", path=path)
        try:
            yield
        finally:
            self._writing.release()


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
