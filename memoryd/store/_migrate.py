"""From no file, or an older one, to the schema of today; or a refusal that says why."""

from __future__ import annotations

from pathlib import Path

import apsw
import attrs

from memoryd.core import Value
from memoryd.errors import ProfileMismatch, StoreBroken, StoreTooNew
from memoryd.store._backup import back_up
from memoryd.store._connection import Connection, connect, open_connection, store_uri
from memoryd.store._filesystem import refuse_network, require_platform
from memoryd.store._known import check_not_lost, note_store
from memoryd.store._pragmas import Options
from memoryd.store._profile import ProfileStore
from memoryd.store._queries import load_migrations, load_queries
from memoryd.store._sync import fsync_directory

__all__ = ["APPLICATION_ID", "Schema", "backup_path", "prepare"]

APPLICATION_ID = 0x6D6D7264
"""``mmrd`` in the file's header, so that ``file`` and we can tell a store of memoryd from any other database."""

OLDEST_SQLITE = (3, 51, 3)
"""Earlier ones can corrupt a file when its write-ahead log is reset."""

LASTING = frozenset({"log", "archive"})
OPTIONS = Options(synchronous="FULL", busy_ms=10_000, creating=True)
CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


@attrs.frozen(slots=True, eq=False, repr=False)
class Schema(Value):
    """What a store file holds: its ``kind`` (``log``, ``memory``, ``archive``) and the SQL of every version since the first.

    A ``lasting`` one cannot be made anew from another: where it was made before and is gone, it is not simply begun again.
    """

    kind: str
    migrations: tuple[str, ...] = attrs.field(repr=False)

    @property
    def lasting(self) -> bool:
        return self.kind in LASTING

    @classmethod
    def load(cls, kind: str, package: str) -> Schema:
        """The schema whose migrations are ``package``'s ``migrations/0001_what.sql`` and on."""
        return cls(kind, load_migrations(package))

    @property
    def version(self) -> int:
        """The newest version, kept in the file's ``user_version``."""
        return len(self.migrations)


@attrs.frozen(slots=True, eq=False, repr=False)
class _State(Value):
    application: int
    version: int
    objects: int


def prepare(path: Path, schema: Schema, profile: ProfileStore, *, vfs: str | None = None) -> None:
    """Make the store file at ``path`` exist, with mode 0600 from its first byte, be ours and be of today's version.

    Any number of processes may do so at once.  An older file is copied to :func:`backup_path` and the copy checked before the pending
    migrations run, all in one transaction: the file is as before or of today.  Raises :class:`~memoryd.errors.StoreTooNew`,
    ``ProfileMismatch``, or another :class:`~memoryd.errors.StoreError`; then nothing was changed.
    """
    require_platform()
    require_sqlite()
    refuse_network(path.parent)
    if schema.lasting:
        check_not_lost(path)
    mode_of = profile.directory / "profile.key"
    connection = open_connection(store_uri(path, mode_of), path, OPTIONS, CREATE, vfs)
    try:
        if not _is_current(connection, schema, profile):
            _bring_up(connection, schema, profile, vfs)
            fsync_directory(path.parent)
    finally:
        connection.close()
    if schema.lasting:
        note_store(path)


def backup_path(path: Path, version: int) -> Path:
    """Where the copy of a file of an older ``version`` is kept: ``log.db.v3.backup`` beside ``log.db``."""
    return path.with_name(f"{path.name}.v{version}.backup")


def require_sqlite(version: str = apsw.sqlite_lib_version()) -> None:
    """Raise :class:`~memoryd.errors.StoreBroken` where apsw brings a SQLite that is not safe to use."""
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise StoreBroken(f"SQLite {version} can corrupt a write-ahead log; install apsw {wanted} or newer")


def _is_current(connection: Connection, schema: Schema, profile: ProfileStore) -> bool:
    """False where there is work to do; raises where the file is not ours or too new."""
    with connection.transaction("DEFERRED"):
        state = _state(connection)
        _check_kind(connection.path, state)
        if state.version == 0:
            return False
        if state.version > schema.version:
            _refuse_newer(connection.path, state.version, schema.version)
        _check_identity(connection, schema, profile)
        return state.version == schema.version


def _bring_up(connection: Connection, schema: Schema, profile: ProfileStore, vfs: str | None) -> None:
    with connection.transaction("IMMEDIATE"):
        version = _state(connection).version
        if version == schema.version:
            return  # another process was quicker
        if version == 0:
            _identify(connection, schema, profile)
        else:
            _keep_copy(connection.path, version, profile, vfs)
        for script in schema.migrations[version:]:
            for _ in connection.execute(script):
                pass  # a script of several statements runs to its end only when its rows are taken
        connection.run(f"PRAGMA user_version = {schema.version}")


def _identify(connection: Connection, schema: Schema, profile: ProfileStore) -> None:
    queries = load_queries("memoryd.store")
    connection.run(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.run(queries["create_identity"])
    connection.run(queries["insert_identity"], (schema.kind, _name_bytes(profile), profile.instance))


def _keep_copy(path: Path, version: int, profile: ProfileStore, vfs: str | None) -> None:
    """Copy through a second connection: it sees the committed state, which the write lock held by the first keeps still."""
    source = connect(path, Options(readonly=True), vfs=vfs)
    try:
        back_up(source, backup_path(path, version), mode_of=profile.directory / "profile.key", vfs=vfs)
    finally:
        source.close()


def _state(connection: Connection) -> _State:
    (application,) = connection.all("PRAGMA application_id")[0]
    (version,) = connection.all("PRAGMA user_version")[0]
    (objects,) = connection.all(load_queries("memoryd.store")["count_objects"])[0]
    return _State(application, version, objects)


def _check_kind(path: Path, state: _State) -> None:
    empty = state.application == 0 and state.version == 0 and state.objects == 0
    if not empty and (state.application != APPLICATION_ID or state.version == 0):
        raise StoreBroken(f"{path} is a database of another program; move it away, or set MEMORYD_HOME", path=str(path))


def _check_identity(connection: Connection, schema: Schema, profile: ProfileStore) -> None:
    path = connection.path
    found = connection.one(load_queries("memoryd.store")["select_identity"])
    kind, _, instance = found or ("nothing", b"", "")
    if kind != schema.kind:
        raise StoreBroken(f"{path} holds {kind}, not {schema.kind}; put the right file back", path=str(path))
    if instance != profile.instance:  # a profile's name may change, what is inside stays its own
        raise ProfileMismatch(f"{path} was copied from another profile; use that one's home, or `memoryd profiles copy`", path=str(path))


def _refuse_newer(path: Path, found: int, known: int) -> None:
    raise StoreTooNew(f"{path} has version {found}, this memoryd knows up to {known}; upgrade memoryd", path=str(path))


def _name_bytes(profile: ProfileStore) -> bytes:
    return profile.name.encode("utf-8", "surrogatepass")
