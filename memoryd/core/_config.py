"""Every setting of memoryd: its default, what it accepts, its one line of documentation.

``memoryd.settings`` reads files and the environment into this schema; a test holds ``config/memoryd.toml`` and
``docs/reference/config.md`` to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from memoryd.core._kinds import Choice, Flag, Floor, Kind, Name, Names, Seconds, Text, Texts, Whole, setting
from memoryd.core._value import Value
from memoryd.errors import ConfigError

__all__ = [
    "CaptureConfig", "Config", "DaemonConfig", "DeadlineConfig", "DeliveryConfig", "GateConfig", "GateMode", "Key", "LogConfig",
    "LoggingConfig", "RecallConfig", "StoreConfig", "ToolConfig", "build_config", "config_keys", "section_doc",
]

GateMode: TypeAlias = Literal["block", "warn", "off"]
_KIB = 1024
_MIB = 1024 * _KIB


# -- the settings ----------------------------------------------------------------------------------


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class CaptureConfig(Value):
    """What is recorded."""

    private: bool = setting(False, Flag(), "true: nothing is recorded unless a scope says private=False")
    exclude: tuple[str, ...] = setting(
        (), Texts(), "folders where agents are not recorded, with all below them: names, or paths with *, ? and **"
    )
    workspace: str = setting(
        "repository", Choice(("repository", "folder")), "what the label workspace names: the repository, or the very folder"
    )


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class LogConfig(Value):
    """The event log: what was accepted, and the queue to the backends."""

    max_bytes: int = setting(0, Whole(), "size in bytes above which turns are refused; 0: no limit")
    barrier_ms: int = setting(50, Whole(1, 60_000), "milliseconds until what was journaled is safe against power loss")
    held_max_bytes: int = setting(16 * _MIB, Whole(), "bytes kept in memory while another process holds the log's lock")
    wal_cap_bytes: int = setting(8 * _MIB, Whole(64 * _KIB), "bytes of a write-ahead log above which it is folded back")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class StoreConfig(Value):
    """All store files of a profile."""

    free_floor: int | Literal["auto"] = setting(
        "auto", Floor(), 'free bytes on the disk below which turns are refused; "auto": the smaller of 256 MiB and 5 %'
    )


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class RecallConfig(Value):
    """What recall gives to a host."""

    budget_chars: int = setting(4000, Whole(200), "characters of a recalled block, fence included")
    spill_chars: int = setting(10_000, Whole(1200), "characters above which a result goes to a private file")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class DeadlineConfig(Value):
    """Seconds that a call may take; then it answers with what there is, or raises."""

    prefetch: float = setting(0.3, Seconds(), "prefetch: what is ready, else nothing")
    recall: float = setting(2.0, Seconds(), "recall")
    retrieve: float = setting(2.0, Seconds(), "retrieve, history, list")
    query: float = setting(2.0, Seconds(), "query")
    store: float = setting(2.0, Seconds(), "store, edit, delete: how long to wait for the primary backend")
    flush: float = setting(5.0, Seconds(), "flush")
    drain: float = setting(10.0, Seconds(), "drain")
    close: float = setting(10.0, Seconds(), "close")
    exit: float = setting(2.0, Seconds(), "the flush when the interpreter ends without a close")
    checkpoint: float = setting(20.0, Seconds(), "checkpoint; what was not archived by then is a refusal")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class GateConfig(Value):
    """The gate before a compaction."""

    mode: GateMode = setting(
        "block", Choice(("block", "warn", "off")), "a failed checkpoint: refuse (block) or say so (warn); off: no gate"
    )
    fallback_dir: str = setting("", Text(), "a second place for the archive, used when the profile's own fails")
    quota_bytes: int = setting(0, Whole(), "bytes of the archive; warns from 80 %, never refuses; 0: no limit")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class DeliveryConfig(Value):
    """Applying events to a backend."""

    batch_events: int = setting(100, Whole(1, 512), "events in one batch")
    batch_bytes: int = setting(_MIB, Whole(_KIB), "bytes in one batch")
    backoff_min: float = setting(0.5, Seconds(), "seconds before the first retry")
    backoff_max: float = setting(60.0, Seconds(), "seconds between retries at most")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class DaemonConfig(Value):
    """The daemon: who goes through it, and what one allows."""

    use: str = setting(
        "auto", Choice(("auto", "require", "never")), "commands and connect(): the daemon if it is up (auto), nothing else, or not at all"
    )
    frame_bytes: int = setting(16 * _MIB, Whole(64 * _KIB), "bytes of one request; a longer one ends its connection")
    in_flight: int = setting(64, Whole(1, 10_000), "slow calls of one connection at once; one more is told to come again")
    connections: int = setting(1024, Whole(16, 100_000), "connections at once; above, the one that is silent for longest is closed")
    idle: float = setting(3600.0, Seconds(), "seconds after which a silent connection is closed")
    stall: float = setting(30.0, Seconds(), "seconds that a client may stop in the middle of a request, or of reading an answer")
    profiles: int = setting(32, Whole(1, 1000), "profiles open at once; above, the one that is unused for longest is closed")
    profile_idle: float = setting(300.0, Seconds(), "seconds after which an unused profile is closed")
    drain: float = setting(10.0, Seconds(), "seconds that calls may go on after the signal to end")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class ToolConfig(Value):
    """The tool ``memory_backend`` that a host gives to its model."""

    cross_user: bool = setting(False, Flag(), "true: a call may name another user than the one that the host bound")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class LoggingConfig(Value):
    """Records of memoryd itself: to stderr or a file, never a message's text."""

    level: str = setting("warning", Choice(("debug", "info", "warning", "error", "off")), "lowest level written")
    format: str = setting("auto", Choice(("auto", "console", "json")), "auto: console on a terminal, else json")
    file: str = setting("", Text(), "a private file for records instead of stderr, as json; relative to the home")


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Config(Value):
    """The configuration of one runtime.  Raises :class:`ConfigError`, one line, for a value of the wrong type."""

    backend: str = setting("local", Name(), "where memory is kept and recalled first; null turns capture off")
    mirrors: tuple[str, ...] = setting((), Names(), "backends that also receive every event")
    language: str = setting("en", Choice(("en", "none")), "language for stemming and stop words; none: neither")
    capture: CaptureConfig = attrs.field(factory=CaptureConfig)
    log: LogConfig = attrs.field(factory=LogConfig)
    store: StoreConfig = attrs.field(factory=StoreConfig)
    recall: RecallConfig = attrs.field(factory=RecallConfig)
    deadlines: DeadlineConfig = attrs.field(factory=DeadlineConfig)
    gate: GateConfig = attrs.field(factory=GateConfig)
    delivery: DeliveryConfig = attrs.field(factory=DeliveryConfig)
    daemon: DaemonConfig = attrs.field(factory=DaemonConfig)
    tool: ToolConfig = attrs.field(factory=ToolConfig)
    logging: LoggingConfig = attrs.field(factory=LoggingConfig)
    backends: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)
    refused: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was asked for and is not done: each a line that names the key.  ``refused`` are primaries beside the one there can be."""
        return tuple(
            f'backend: "{name}" is refused, "{self.backend}" is the primary already; name "{name}" under mirrors to send to both'
            for name in self.refused
        )

    def __attrs_post_init__(self) -> None:
        if self.backend == "null" and self.mirrors:
            raise ConfigError('mirrors: must be empty beside backend = "null", which turns capture off')
        if self.backend in self.mirrors:
            raise ConfigError(f'mirrors: "{self.backend}" is the primary backend already')
        if self.delivery.backoff_max < self.delivery.backoff_min:
            raise ConfigError("delivery.backoff_max: expected at least delivery.backoff_min")


# -- the schema, as data ---------------------------------------------------------------------------

_SECTIONS: Mapping[str, type[Any]] = {
    "capture": CaptureConfig,
    "log": LogConfig,
    "store": StoreConfig,
    "recall": RecallConfig,
    "deadlines": DeadlineConfig,
    "gate": GateConfig,
    "delivery": DeliveryConfig,
    "daemon": DaemonConfig,
    "tool": ToolConfig,
    "logging": LoggingConfig,
}


@attrs.frozen(slots=True, eq=False, repr=False)
class Key(Value):
    """One setting: ``path`` is its full name (``gate.mode``), ``section`` is empty at the top."""

    section: str
    name: str
    default: Any
    kind: Kind
    doc: str

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name

    def value(self, config: Config) -> Any:
        """What ``config`` says for this setting."""
        return getattr(getattr(config, self.section) if self.section else config, self.name)


def config_keys() -> tuple[Key, ...]:
    """Every setting, in the order of the file."""
    tables: list[tuple[str, type[Any]]] = [("", Config), *_SECTIONS.items()]
    return tuple(
        Key(section, field.name, field.default, field.metadata["kind"], field.metadata["doc"])
        for section, schema in tables
        for field in attrs.fields(schema)
        if "kind" in field.metadata
    )


def section_doc(section: str) -> str:
    """The one line that documents a table of the file."""
    return (_SECTIONS[section].__doc__ or "").strip()


def build_config(
    values: Mapping[str, Any], backends: Mapping[str, Mapping[str, Any]] | None = None, refused: tuple[str, ...] = ()
) -> Config:
    """A :class:`Config` from values by full name (``{"gate.mode": "warn"}``); what is not given has its default."""
    top = {path: value for path, value in values.items() if "." not in path}
    tables: dict[str, Any] = {}
    for section, schema in _SECTIONS.items():
        prefix = section + "."
        given = {path.removeprefix(prefix): value for path, value in values.items() if path.startswith(prefix)}
        tables[section] = schema(**given)
    return Config(**top, **tables, backends=dict(backends or {}), refused=refused)
