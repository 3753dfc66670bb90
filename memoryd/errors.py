"""Every exception that memoryd raises.

Each class answers two questions: who has to act, and does trying again help?  ``retryable`` is the second answer.  The first is in
the message, which names what was wrong and what to do.  Messages never contain the text of a turn, a memory or a checkpoint (G7).
"""

from __future__ import annotations

__all__ = [
    "BackendAmbiguous", "BackendError", "BackendNotFound", "BackendPermanent", "BackendTransient", "BackendUnavailable",
    "BarrierFailed", "CheckpointBlocked", "CheckpointNotFound", "ClosedError", "ConfigError", "ConnectionLost", "DaemonBusy",
    "DaemonError", "DaemonFault", "DaemonRunning", "DaemonUnavailable", "DeadlineExceeded", "ForkedError", "InvalidInput",
    "JournalUnavailable", "MemorydError", "NotDurable", "PlatformUnsupported", "ProfileMismatch", "ProtocolError",
    "ProtocolMismatch", "ScopeConflict", "ScopeError", "ScopeMissing", "StoreBroken", "StoreCorrupt", "StoreError",
    "StoreFull", "StoreLocked", "StoreReadOnly", "StoreTooNew",
]


class MemorydError(Exception):
    """Base of every error of memoryd.  ``retryable`` is True where the same call may succeed later without a change by the caller."""

    retryable: bool = False


# -- the caller has to change something -------------------------------------------------------------------------------------


class InvalidInput(MemorydError, ValueError):
    """A value that the caller gave cannot be stored.  ``field`` names the argument; nothing was written."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class ConfigError(MemorydError, ValueError):
    """A configuration file, variable or argument is wrong.  The message is one line: where, key, what was expected."""


class ScopeError(MemorydError):
    """The scope of a call is not usable."""


class ScopeMissing(ScopeError):
    """A call needs a user or a session that no scope gives; use ``with memoryd.scope(user=..., session=...)``."""


class ScopeConflict(ScopeError):
    """A call contradicts its session or runtime: another profile, or another value of ``private`` than earlier in the session."""


class ClosedError(MemorydError):
    """The runtime or store was closed by its owner; open a new one."""


class ForkedError(MemorydError):
    """The process forked after open; SQLite handles do not survive a fork.  Open a runtime in the child (``fork="reopen"``)."""


class PlatformUnsupported(MemorydError):
    """memoryd runs on Linux and macOS."""


class BackendNotFound(ConfigError):
    """No backend of that name is installed.  The message lists those that are."""


class BackendUnavailable(ConfigError):
    """The named backend says that something is missing: a setting, a package.  The message says what to set or to install."""


class CheckpointNotFound(MemorydError, LookupError):
    """No checkpoint, or no attempt of it, has that id in this profile."""


class DaemonRunning(MemorydError):
    """Another daemon serves that socket already; the message names its pid and version where it can."""


# -- the world has to change something --------------------------------------------------------------------------------------


class StoreError(MemorydError):
    """A store file cannot be used.  ``path`` is the file, ``cause`` a short class of the reason (``full``, ``locked``, ...)."""

    cause: str = "store"

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class StoreLocked(StoreError):
    """Another process holds the file's lock longer than the deadline allows."""

    cause = "locked"
    retryable = True


class StoreFull(StoreError):
    """The disk, the quota or ``log.max_bytes`` has no room; free some, and the same call succeeds."""

    cause = "full"
    retryable = True


class StoreReadOnly(StoreError):
    """The file or its directory cannot be written by this user."""

    cause = "read-only"


class StoreCorrupt(StoreError):
    """SQLite reports damage in the file.  Nothing was deleted."""

    cause = "corrupt"


class StoreBroken(StoreError):
    """The operating system failed an I/O operation, or the path cannot be opened."""

    cause = "io"
    retryable = True


class StoreTooNew(StoreError):
    """The file was written by a newer memoryd; upgrade the program."""

    cause = "too-new"


class ProfileMismatch(StoreError):
    """The store belongs to another profile or instance (a copied directory); re-key the copy on purpose, or use its own home."""

    cause = "foreign"


class BarrierFailed(StoreError):
    """fdatasync of the log failed: what was journaled since the last barrier survives kill -9 but maybe not power loss."""

    cause = "barrier"


class JournalUnavailable(MemorydError):
    """The log refused an event (``state`` is ``refused``); ``reason`` says why.  The event is not kept."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotDurable(MemorydError):
    """``flush`` could not make everything accepted so far safe against power loss before its deadline."""

    retryable = True


class DeadlineExceeded(MemorydError):
    """The call's own deadline passed.  What it had accepted stays accepted."""

    retryable = True


class CheckpointBlocked(MemorydError):
    """The gate refuses a compaction because its transcript is not safely archived.

    ``code`` is always ``BLOCKED_MISSING_PREREQUISITE``; ``cause`` is a short class of the reason, ``remedy`` what the user can do.
    """

    code = "BLOCKED_MISSING_PREREQUISITE"
    retryable = True

    def __init__(self, cause: str, message: str, remedy: str) -> None:
        super().__init__(f"{self.code}: {message} {remedy}")
        self.cause = cause
        self.problem = message
        self.remedy = remedy


# -- a backend answers ------------------------------------------------------------------------------------------------------


class BackendError(MemorydError):
    """A backend could not do what it was asked; adapters raise one of the three subclasses, with ``__cause__`` set."""


class BackendTransient(BackendError):
    """Trying the same call again later is right: an outage, a rate limit, a busy store."""

    retryable = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BackendPermanent(BackendError):
    """Trying the same call again is useless: the backend rejects this input or these credentials."""


class BackendAmbiguous(BackendError):
    """The call may or may not have taken effect (timeout or reset after sending): look before sending again."""

    retryable = True


# -- between a client and the daemon ----------------------------------------------------------------------------------------


class DaemonError(MemorydError):
    """A call through the daemon could not be answered.  What the called method itself raises comes as its own class."""


class DaemonUnavailable(DaemonError):
    """No daemon answers at the socket, it is closing, or it serves another home.  The call was not done."""

    retryable = True


class DaemonBusy(DaemonError):
    """A limit of the daemon is reached: requests in flight, or profiles open.  The call was not done."""

    retryable = True


class ConnectionLost(DaemonError):
    """The connection ended before the answer: the call may or may not have taken effect.  Calls with an event id are sent again."""

    retryable = True


class ProtocolError(DaemonError):
    """Bytes that are no message of the protocol, or a message out of turn.  It costs the connection that they came over."""


class ProtocolMismatch(DaemonError):
    """Client and daemon have no version of the protocol in common; the message says which of the two to upgrade or restart."""


class DaemonFault(DaemonError):
    """The daemon met a bug of its own while it served the call; its log has the traceback."""
