"""The host port: what an adapter for an agent program tells memoryd of it, as values.

An installer plans and does not write: a :class:`Plan` is applied, shown, or thrown away by ``memoryd install``.  Entry points in the
group ``memoryd.hosts`` name objects that follow :class:`Host`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import attrs

from memoryd.core import Value

__all__ = ["Change", "Check", "CheckState", "GateCapability", "Host", "HostInfo", "Place", "Plan"]

GateCapability: TypeAlias = Literal["native", "hard-veto", "manual-only", "undocumented", "observe-only"]
CheckState: TypeAlias = Literal["ok", "warn", "fail", "skip"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Check(Value):
    """One thing that was looked at: ``said`` is what was found, ``remedy`` what to do about it (empty where nothing is to be done)."""

    name: str
    state: CheckState
    said: str
    remedy: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class Change(Value):
    """One file as it shall be: ``content`` None removes it.  ``why`` is one line for the person who reads the plan."""

    path: Path
    content: bytes | None = attrs.field(repr=False)
    why: str
    mode: int = 0o600


@attrs.frozen(slots=True, eq=False, repr=False)
class Plan(Value):
    """What an install or uninstall would do, in order.  ``notes`` are said afterwards: what is recorded, where, what to do next.

    ``erases`` are directories that are deleted whole, with no copy kept: what was recorded, where its deletion was asked for.
    No changes means that all is as it shall be.
    """

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    erases: tuple[Path, ...] = ()


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Place(Value):
    """Where a plan is made for: the user's ``home``, ``memoryd_home``, the absolute ``python`` that memoryd runs in, the directory the
    command was given in, and ``options`` as the command line had them (``scope``, ``gate``, ``hermes_home``, ``purge``): only what was
    given, flags as ``yes`` and ``no``."""

    home: Path
    memoryd_home: Path
    python: str
    cwd: Path
    environ: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    options: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(slots=True, eq=False, repr=False)
class HostInfo(Value):
    """``capability`` is what the host's compaction lets a gate do, ``since`` the first version that does, ``says`` the line that is
    shown for it."""

    name: str
    label: str
    capability: GateCapability
    says: str
    since: str = ""


class Host(Protocol):
    """An agent program that memoryd can be installed into.  Calls are plain and quick; none writes, none uses the network."""

    @property
    def info(self) -> HostInfo: ...

    def present(self, place: Place) -> bool:
        """Whether this host is on this machine: its program, or a folder of its own.  ``memoryd install all`` takes those."""
        ...

    def installed(self, place: Place) -> bool:
        """Whether this host's configuration names memoryd now."""
        ...

    def plan_install(self, place: Place) -> Plan:
        """Idempotent: a second plan after the first was applied has no changes.  Raises :class:`InvalidInput` or :class:`ConfigError`
        where the host's files cannot be read or edited."""
        ...

    def plan_uninstall(self, place: Place) -> Plan: ...

    def checks(self, place: Place) -> Sequence[Check]:
        """What ``memoryd doctor`` proves for this host."""
        ...
