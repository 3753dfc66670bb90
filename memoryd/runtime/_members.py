"""Which backends a runtime has, and in which role: one primary, any number of mirrors, and local behind them all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs
import trio

from memoryd.core import Availability, Backend, BackendContext, BackendInfo, Config, profile_folder
from memoryd.errors import (
    BackendError,
    BackendNotFound,
    BackendPermanent,
    BackendUnavailable,
    MemorydError,
    StoreCorrupt,
    StoreError,
)
from memoryd.redact import load_redactor
from memoryd.runtime._discover import FoundBackend
from memoryd.runtime._plugins import build_backend, make_backend
from memoryd.runtime._progress import Progress
from memoryd.runtime._strangers import strangers_code
from memoryd.store import ProfileStore

__all__ = ["AUTO", "REPAIR", "Member", "Role", "ask_backend", "backend_context", "build_members", "health_problem", "roles"]

Role = Literal["primary", "mirror", "history"]

AUTO = "auto"
PREFERRED = "honcho"  # what "auto" takes, where it is configured and healthy
REPAIR = "'memoryd repair' rebuilds it from the log"
_HEALTH_DEADLINE = 3.0


@attrs.define(slots=True, eq=False, repr=False)
class Member:
    """One backend of the runtime, with how far it is."""

    name: str
    role: Role
    backend: Backend
    progress: Progress = attrs.field(factory=Progress)
    failures: int = 0
    degraded_since: int | None = None
    recovered_at: int | None = None
    recovered: int = 0
    last_error: str = ""
    is_open: bool = False
    damaged: bool = False

    def failed(self, error: str, now: int) -> None:
        self.failures += 1
        self.last_error = error
        if self.degraded_since is None:
            self.degraded_since = now

    def met(self, error: MemorydError) -> str:
        """Note what a call of the backend ended in; gives the class of the error, or of what is behind it."""
        cause = _behind(error)
        self.damaged = isinstance(cause, StoreCorrupt)
        self.last_error = type(cause).__name__
        return self.last_error

    def stuck(self, error: MemorydError, now: int) -> str:
        """As :meth:`met`, of a call that has to succeed before this backend gets further."""
        kind = self.met(error)
        if self.damaged:
            self.progress.block()
        self.failed(kind, now)
        return kind

    def succeeded(self, count: int, now: int) -> None:
        if self.degraded_since is not None:
            self.recovered_at, self.degraded_since, self.recovered = now, None, 0
        if self.failures:
            self.failures, self.damaged = 0, False
            self.progress.block(False)
        self.recovered += count if self.recovered_at is not None else 0


def _behind(error: MemorydError) -> BaseException:
    """What a backend's error stands for, where that is told: an error of its store, or a foreign one."""
    return (error if isinstance(error, StoreError) else error.__cause__) or error


def build_members(home: Path, profile: ProfileStore, config: Config, vfs: str | None) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """The members, built and not opened, and what has to be said about the choice.

    Under ``auto`` the preferred backend is primary where it is configured; whether it is healthy is asked when the runtime opens.
    Raises :class:`ConfigError` and :class:`BackendPermanent` for a named backend that cannot be had.
    """

    def make(name: str) -> Backend:
        return make_backend(backend_context(name, profile, config, vfs), home)

    if config.backend != AUTO:
        named = roles(config, config.backend)
        return _members({name: make(name) for name in named}, named), ()
    preferred: dict[str, Backend] = {}
    notes: tuple[str, ...] = ()
    try:
        preferred[PREFERRED] = make(PREFERRED)
    except (BackendNotFound, BackendUnavailable, BackendPermanent) as error:
        notes = (f"auto: local is the primary: {error}",)
    wanted = roles(config, PREFERRED if preferred else "local")
    return _members(preferred | {name: make(name) for name in wanted if name not in preferred}, wanted), notes


def roles(config: Config, primary: str) -> Mapping[str, Role]:
    """The role of each backend by name, the primary first.  Local stands behind every other one, unless capture is off."""
    found: dict[str, Role] = {primary: "primary"}
    for name in config.mirrors:
        found.setdefault(name, "mirror")
    if primary != "null":
        found.setdefault("local", "history")
    return found


def _members(backends: Mapping[str, Backend], wanted: Mapping[str, Role]) -> tuple[Member, ...]:
    return tuple(Member(name, role, backends[name]) for name, role in wanted.items())


def backend_context(name: str, profile: ProfileStore, config: Config, vfs: str | None = None) -> BackendContext:
    """What the backend ``name`` of a profile is built from."""
    settings = config.backends.get(name, {})
    if name == "local":
        settings = {"language": config.language, **settings}
    return BackendContext(name, profile.directory, profile.name, profile.instance, profile.key, settings, vfs, load_redactor)


def ask_backend(found: FoundBackend, home: Path, profile: str, config: Config) -> tuple[BackendInfo, Availability]:
    """Load and build ``found`` to hear what it is and whether it could be used.  It is not opened, and no file is made.

    Raises :class:`BackendPermanent` where its code fails, :class:`ConfigError` for its settings.
    """
    nowhere = ProfileStore(name=profile, instance="", directory=home / "profiles" / profile_folder(profile), key=bytes(32))
    backend = build_backend(found, backend_context(found.name, nowhere, config))
    with strangers_code(found.name, "asked"):
        return backend.info, backend.is_available()


async def health_problem(backend: Backend) -> str:
    """Open ``backend`` and ask for its health: why it cannot be used now, or an empty text.  A short deadline."""
    try:
        with trio.fail_after(_HEALTH_DEADLINE):
            await backend.open()
            health = await backend.health()
    except trio.TooSlowError:
        return f"no answer within {_HEALTH_DEADLINE:g} s"
    except BackendError as error:
        return str(error)
    return "" if health else health.detail or "it is not healthy"
