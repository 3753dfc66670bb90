"""The agent programs that adapters know: what each one's compaction allows, whether memoryd is in it, and its own checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from memoryd.core import Value
from memoryd.doctor._verdict import broken, doubtful, fine
from memoryd.errors import MemorydError
from memoryd.hosts import Check, Place, find_host, has_spool, host_names, make_place, paused_now

__all__ = ["HostSeen", "hooks", "host_checks", "hosts", "see_hosts"]


@attrs.frozen(slots=True, eq=False, repr=False)
class HostSeen(Value):
    """One agent program: ``capability`` and ``says`` tell what its compaction lets the gate do; ``problem`` why its adapter cannot say."""

    name: str
    label: str = ""
    capability: str = ""
    says: str = ""
    installed: bool = False
    problem: str = ""


def see_hosts(home: Path) -> tuple[HostSeen, ...]:
    """Every host that an installed package knows.  Never raises: an adapter that is broken says so in its place."""
    try:
        place = make_place(home)
        return tuple(_see(name, place) for name in host_names())
    except MemorydError as error:
        return (HostSeen("?", problem=str(error)),)


def _see(name: str, place: Place) -> HostSeen:
    try:
        host = find_host(name)
        info, there = host.info, host.installed(place)
    except Exception as error:  # noqa: BLE001 - an adapter is a stranger's code: it is reported, and the rest goes on
        return HostSeen(name, problem=_told(error))
    return HostSeen(name, info.label, info.capability, info.says, there)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, MemorydError) else f"its adapter failed: {type(error).__name__}"


def hosts(home: Path) -> Iterator[Check]:
    """One line for each host that memoryd is installed in, and for each adapter that is broken; and one while none is recorded."""
    if home.is_dir() and paused_now(home) is not None:
        yield doubtful("recording", "agent programs are not recorded: it is paused", "memoryd resume")
    seen = see_hosts(home)
    for host in seen:
        if host.problem:
            yield doubtful(f"host {host.name}", host.problem, "reinstall the package that has this adapter, or remove it")
        elif host.installed:
            yield fine(f"host {host.name}", f"{host.capability}: {host.says}")
    if not any(host.installed or host.problem for host in seen):
        known = ", ".join(host.name for host in seen) or "none"
        yield fine("hosts", f"memoryd is in no agent program yet; 'memoryd install' knows {known}")


def hooks(home: Path) -> Check:
    """What hook programs left while nobody answered them."""
    aside = sorted((home / "hooks.quarantine").glob("*"))
    if aside:
        said = f"{len(aside)} files of calls that could not be read are kept in {aside[0].parent}"
        return doubtful("hooks", said, "reinstall the hooks if they are older than memoryd (memoryd install all), and delete the files")
    if has_spool(home):
        return doubtful("hooks", "calls of hook programs wait to be taken in", "memoryd status takes them in, and so does the daemon")
    return fine("hooks", "no call of a hook program waits")


def host_checks(name: str, home: Path, options: dict[str, str] | None = None) -> tuple[Check, ...]:
    """What the host's adapter proves.  Raises :class:`ConfigError` where there is no such host."""
    place = make_place(home, options, os.environ)
    if name not in host_names():
        find_host(name)  # it says which ones there are
    try:
        return tuple(find_host(name).checks(place))
    except Exception as error:  # noqa: BLE001 - as above
        return (broken(f"host {name}", _told(error), f"memoryd install {name} --dry-run shows what should be there"),)
