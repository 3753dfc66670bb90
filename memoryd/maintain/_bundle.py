"""The file of a backup: a plain tar archive of known names, whose first member says what the others must be."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import attrs

from memoryd import __version__
from memoryd.core import Value, check_name
from memoryd.errors import InvalidInput, StoreCorrupt, StoreTooNew
from memoryd.store import os_errors

__all__ = ["FILES", "Manifest", "extract", "read_manifest", "write_bundle"]

FORMAT, VERSION = "memoryd-backup", 1
MANIFEST = "manifest.json"
FILES = ("profile.json", "profile.key", "gate.json", "gate.receipts.jsonl", "memory.db", "log.db", "archive.db", "second.db")
_MAX_MANIFEST = 1 << 20
_CHUNK = 1 << 20
Told = Callable[[int, int], None]


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Manifest(Value):
    """What a backup holds: whose, of when, up to which event of which epoch; each file's size and BLAKE2b-256."""

    name: str
    instance: str
    created: str
    epoch: str
    head: int
    files: Mapping[str, tuple[int, str]]

    @property
    def bytes(self) -> int:
        return sum(size for size, _ in self.files.values())


def write_bundle(stream: IO[bytes], folder: Path, told: Told, *, name: str, instance: str, epoch: str, head: int) -> Manifest:
    """Write those files of ``folder`` that a backup has into ``stream``."""
    found = {file: (folder / file).stat().st_size for file in FILES if (folder / file).exists()}
    told = _spread(told, 2 * sum(found.values()))
    digests = {file: (size, _digest(folder / file, told)) for file, size in found.items()}
    created = datetime.now(UTC).isoformat()
    manifest = Manifest(name=name, instance=instance, created=created, epoch=epoch, head=head, files=digests)
    head_line = {"format": FORMAT, "version": VERSION, "memoryd": __version__, **attrs.asdict(manifest)}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, MANIFEST, io.BytesIO(json.dumps(head_line).encode("ascii")), None, told)
        for file in found:
            with open(folder / file, "rb") as source:
                _add(tar, file, source, found[file], told)
    return manifest


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], size: int | None, told: Told) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(source.getbuffer()) if size is None and isinstance(source, io.BytesIO) else size or 0
    info.mode = 0o600
    info.mtime = int(datetime.now(UTC).timestamp())
    tar.addfile(info, _Telling(source, told))


class _Telling:
    """A file that tells how much of it was read."""

    def __init__(self, source: IO[bytes], told: Told) -> None:
        self._source = source
        self._told = told

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._told(len(data), 0)
        return data


def _spread(told: Told, total: int) -> Told:
    """``step(bytes, _)`` adds up."""
    done = 0

    def step(size: int, _: int) -> None:
        nonlocal done
        done += size
        told(min(done, total), total)

    return step


def _digest(path: Path, told: Told) -> str:
    with open(path, "rb") as source:
        state = blake2b(digest_size=32)
        while chunk := source.read(_CHUNK):
            state.update(chunk)
            told(len(chunk), 0)
    return state.hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------------------


def read_manifest(path: Path) -> Manifest:
    """What the backup at ``path`` says that it holds.

    Raises :class:`StoreCorrupt` for what is no backup, :class:`StoreTooNew` for one of a newer memoryd, ``OSError``.
    """
    with _opened(path) as tar:
        return _manifest(path, tar)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    if not path.is_file() and path.exists():
        raise InvalidInput("file", f"{path} is no file")
    try:
        with open(path, "rb") as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, detail: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is no backup of memoryd, or it is damaged ({detail}); nothing was changed", path=str(path))


def _manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    member = tar.next()
    if member is None or member.name != MANIFEST or not member.isreg() or member.size > _MAX_MANIFEST:
        raise _damaged(path, "it does not begin with its manifest")
    source = tar.extractfile(member)
    assert source is not None, "a regular file"
    try:
        return _parsed(path, json.loads(source.read()))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, "its manifest is not complete") from error


def _parsed(path: Path, head: dict[str, Any]) -> Manifest:
    if head["format"] != FORMAT:
        raise _damaged(path, "its manifest is of another format")
    if head["version"] != VERSION:
        raise StoreTooNew(f"{path} is a backup of version {head['version']}, this memoryd reads {VERSION}; upgrade memoryd", path=str(path))
    files = {str(name): (int(size), str(digest)) for name, (size, digest) in head["files"].items()}
    if not {"profile.json", "profile.key"} <= files.keys() <= set(FILES):
        raise _damaged(path, "its manifest names other files than a backup has")
    name = check_name("profile", head["name"])
    words = {word: str(head[word]) for word in ("instance", "created", "epoch")}
    return Manifest(name=name, head=int(head["head"]), files=files, **words)


def extract(path: Path, into: Path | None, told: Told) -> Manifest:
    """Check every byte of the backup at ``path``, and write its files into the directory ``into``, where one is given.

    Only the names that a backup has are written, each a new file of mode 0600.
    """
    with _opened(path) as tar:
        manifest = _manifest(path, tar)
        told = _spread(told, manifest.bytes)
        left = dict(manifest.files)
        while (member := tar.next()) is not None:
            size, digest = left.pop(member.name, (-1, ""))
            if not member.isreg() or member.size != size:
                raise _damaged(path, f"{member.name[:80]!r} is not what the manifest says")
            source = tar.extractfile(member)
            assert source is not None, "a regular file"
            target = into / member.name if into is not None else None
            with os_errors(target or path):
                found = _copied(source, target, told)
            if found != digest:
                raise _damaged(path, f"the bytes of {member.name} are not those that were written")
        if left:
            raise _damaged(path, f"{', '.join(left)} missing")
        return manifest


def _copied(source: IO[bytes], target: Path | None, told: Told) -> str:
    state = blake2b(digest_size=32)
    fd = os.open(target or os.devnull, os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if target else 0), 0o600)
    with open(fd, "wb") as stream:
        while chunk := source.read(_CHUNK):
            state.update(chunk)
            stream.write(chunk)
            told(len(chunk), 0)
        stream.flush()
        if target is not None:
            os.fsync(fd)
    return state.hexdigest()
