"""All checks, in the order in which a person would look: the machine, the disk, a real write and read, then each profile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

import attrs
import trio

from memoryd.connect import connect
from memoryd.core import Config, LoggingConfig, Value
from memoryd.doctor._archive import archive
from memoryd.doctor._daemon import DaemonSeen, daemon, one_configuration, see_daemon
from memoryd.doctor._disk import disk, place
from memoryd.doctor._hosts import hooks, host_checks, hosts
from memoryd.doctor._living import living
from memoryd.doctor._machine import machine
from memoryd.doctor._proof import healthy_backends, write_and_read
from memoryd.doctor._settings import backends, plugins, read_settings
from memoryd.doctor._stores import clock, leftovers, locks, stores, write_ahead_logs
from memoryd.doctor._verdict import RESTORE, broken, fine, remedy_of
from memoryd.errors import MemorydError
from memoryd.hosts import Check
from memoryd.maintain import list_profiles
from memoryd.runtime import make_gate
from memoryd.store import ProfileStore, open_profile, profile_directory

__all__ = ["Finding", "examine"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Finding(Value):
    """A check and the profile that it is about; the empty name is the machine."""

    profile: str
    check: Check


async def examine(home: Path, profiles: Iterable[str] | None = None, host: str | None = None) -> AsyncIterator[Finding]:
    """Every check as it is made, of ``profiles`` or all there are; with ``host`` only those of that agent program.  Never raises what a
    check is about.

    Raises :class:`ConfigError` where there is no such host.
    """
    if host is not None:
        for check in await trio.to_thread.run_sync(host_checks, host, home):
            yield Finding("", check)
        return
    there = list_profiles(home) if profiles is None else ()
    names = [profile.name for profile in there if not profile.problem] if profiles is None else list(profiles)
    config, _ = read_settings(home, names[0] if names else "default")
    seen = see_daemon()
    for check in [*machine(), daemon(seen), *plugins(home), *hosts(home), hooks(home)]:
        yield Finding("", check)
    async for check in _home(home, config):
        yield Finding("", check)
    for profile in there:
        if profile.problem:
            yield Finding(profile.name, broken("profile", profile.problem, RESTORE))
    for name in names:
        config, settings = read_settings(home, name)
        yield Finding(name, settings)
        for check in backends(home, name, config):
            yield Finding(name, check)
        async for check in _profile(home, name, _silent(config), seen):
            yield Finding(name, check)


def _silent(config: Config) -> Config:
    """Records of what is being looked for would be told twice."""
    return attrs.evolve(config, logging=LoggingConfig(level="off"))


async def _home(home: Path, config: Config) -> AsyncIterator[Check]:
    yield place(home)
    if not await trio.Path(home).is_dir():
        return
    for check in await _taken("home", lambda: disk(home, config)):
        yield check
    yield await write_and_read(home, config)


async def _profile(home: Path, name: str, config: Config, seen: DaemonSeen) -> AsyncIterator[Check]:
    directory = profile_directory(home, name)
    if not await trio.Path(directory / "profile.json").exists():
        yield fine("profile", "nothing was recorded in it yet")
        return
    for check in await _taken("stores", lambda: _files(directory, config)):
        yield check
    try:
        store = open_profile(home, name)
    except MemorydError as error:
        yield broken("profile", str(error), remedy_of(error, RESTORE))
        return
    for check in await _taken("archive", lambda: _archived(store, config)):
        yield check
    async for check in healthy_backends(home, store, config):
        yield check
    for check in await _alive(home, name, config, seen):
        yield check


def _files(directory: Path, config: Config) -> Iterator[Check]:
    yield from stores(directory)
    yield write_ahead_logs(directory, config.log.wal_cap_bytes)
    yield from locks(directory)
    yield from clock(directory)


def _archived(store: ProfileStore, config: Config) -> Iterator[Check]:
    gate = make_gate(store, config)
    try:
        yield from archive(gate)
    finally:
        gate.close()


async def _alive(home: Path, name: str, config: Config, seen: DaemonSeen) -> list[Check]:
    """As the daemon has it open, or as a program that opens it; last, because opening takes in what is spooled and goes on delivering."""
    try:
        async with connect(home, name, config) as runtime:
            await runtime.catch_up(config.deadlines.retrieve)
            status = await runtime.status()
    except MemorydError as error:
        return [broken("opening", str(error), remedy_of(error))]
    mismatch = one_configuration(seen, status.pid) if config.daemon.use != "never" else ()
    return [*mismatch, *living(status), *leftovers(Path(status.directory))]


async def _taken(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """What ``look`` finds, on a thread; where it is stopped by what nobody can read, that."""
    found: list[Check] = []
    try:
        await trio.to_thread.run_sync(lambda: found.extend(look()))
    except (MemorydError, OSError) as error:
        found.append(broken(name, str(error), "check the disk, and the owner and modes of the home"))
    return found
