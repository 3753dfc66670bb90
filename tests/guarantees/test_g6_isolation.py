"""G6: profile and user isolate by construction; every read path is tried with two profiles and two users."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.errors import ProfileMismatch, ScopeConflict, ScopeMissing
from memoryd.store import open_profile, profile_directory

SECRET = "zebra-of-ada"
Read = Callable[[memoryd.Runtime, dict[str, str]], Awaitable[Any]]


async def _checkpoint_rows(rt: memoryd.Runtime, ids: dict[str, str]) -> Any:
    return await rt.restore(ids["checkpoint"])


# every public method that returns stored text; the test below fails where a new one is not listed
READS: dict[str, Read] = {
    "recall": lambda rt, ids: rt.recall("zebra of ada"),
    "prefetch": lambda rt, ids: rt.prefetch("zebra of ada"),
    "retrieve": lambda rt, ids: rt.retrieve("animal"),
    "query": lambda rt, ids: rt.query("zebra"),
    "list_keys": lambda rt, ids: rt.list_keys(),
    "list_memories": lambda rt, ids: rt.list_memories(),
    "history": lambda rt, ids: rt.history("animal"),
    "find": lambda rt, ids: rt.find(ids["turn"]),
    "checkpoints": lambda rt, ids: rt.checkpoints(),
    "checkpoint_info": lambda rt, ids: rt.checkpoint_info(ids["checkpoint"]),
    "restore": _checkpoint_rows,
    "verify": lambda rt, ids: rt.verify(ids["checkpoint"]),
}
NOT_READS = {
    "sync_turn", "queue_prefetch", "mark_session", "dead_letters", "last_flush", "store", "delete", "edit", "settled", "forget",
    "flush", "drain", "catch_up", "checkpoint", "status",
}  # fmt: skip


def test_every_read_path_is_listed() -> None:
    names = {name for name, _ in inspect.getmembers(memoryd.Runtime, inspect.isfunction) if not name.startswith("_")}
    assert names == set(READS) | NOT_READS


async def fill(rt: memoryd.Runtime) -> dict[str, str]:
    with memoryd.scope(user="ada", session="shared"):
        turn = rt.sync_turn(f"my animal is {SECRET}", "Noted.")
        await rt.store("animal", SECRET)
        receipt = await rt.checkpoint([{"role": "user", "content": SECRET}])
        await rt.drain()
    return {"turn": turn.event_id, "checkpoint": receipt.id}


async def read(rt: memoryd.Runtime, name: str, ids: dict[str, str]) -> str:
    try:
        return repr(_plain(await READS[name](rt, ids)))
    except memoryd.errors.MemorydError as error:
        return f"{type(error).__name__}"


def _plain(value: Any) -> Any:
    import attrs

    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@pytest.mark.parametrize("name", sorted(READS))
async def test_the_owner_reads_it_and_another_user_does_not(tmp_path: Path, name: str) -> None:
    patient = {"deadlines": {"prefetch": 10.0}}  # on a busy machine what is not ready in time would be missing
    async with memoryd.open_runtime(tmp_path, config=patient) as rt:
        ids = await fill(rt)
        with memoryd.scope(user="ada", session="shared"):
            seen = await read(rt, name, ids)
            assert any(mark in seen for mark in (SECRET, "animal", "shared", "checkpoints': 1"))
        with memoryd.scope(user="bob", session="shared"):
            seen = await read(rt, name, ids)
            assert SECRET not in seen
            assert "animal" not in seen
            assert "shared" not in seen


@pytest.mark.parametrize("name", sorted(READS))
async def test_another_profile_does_not_read_it(tmp_path: Path, name: str) -> None:
    async with memoryd.open_runtime(tmp_path, "work") as rt:
        ids = await fill(rt)
    async with memoryd.open_runtime(tmp_path, "home") as rt:
        with memoryd.scope(user="ada", session="shared"):
            assert SECRET not in await read(rt, name, ids)


@pytest.mark.parametrize("name", sorted(READS))
async def test_a_read_without_a_user_is_refused(tmp_path: Path, name: str) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with pytest.raises(ScopeMissing, match=r"memoryd\.scope"):
            await READS[name](rt, {"turn": "00" * 16, "checkpoint": "00" * 16})


NAMES = ["default", "../x", "/etc", "*", "a.b", "a-b", "a_b", "A-B", "x" * 300, "x" * 499 + "y", "שלום", "中文", "👩‍👩‍👧", "\ud800", "a\0b", " "]


def test_profile_names_map_injectively_to_plain_directories(tmp_path: Path) -> None:
    directories = {profile_directory(tmp_path, name) for name in NAMES}
    assert len(directories) == len(NAMES)
    assert {directory.parent for directory in directories} == {tmp_path / "profiles"}
    assert {len(directory.name) for directory in directories} == {26}


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_hostile_names_of_users_and_sessions_stay_apart(tmp_path: Path, name: str) -> None:
    others = [other for other in NAMES if other != name][:4]
    async with memoryd.open_runtime(tmp_path, name) as rt:
        with memoryd.scope(user=name, session=name):
            rt.sync_turn("zebra", "ok")
            await rt.store(name, "zebra value")
            await rt.drain()
            assert [hit.session for hit in await rt.recall("zebra", session=name)] == [name] * len(
                await rt.recall("zebra", session=name)
            )
            assert await rt.list_keys() == [name]
        for other in others:
            with memoryd.scope(user=other, session=name):
                assert not await rt.recall("zebra")
                assert await rt.list_keys() == []


async def test_a_scope_of_another_profile_is_refused(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, "work") as rt:
        with memoryd.scope(profile="home", user="ada", session="s"), pytest.raises(ScopeConflict):
            rt.sync_turn("zebra", "ok")


async def test_recall_covers_all_sessions_unless_one_is_named(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        for session in ("s1", "s2"):
            with memoryd.scope(user="ada", session=session, agent=f"agent of {session}"):
                rt.sync_turn(f"zebra in {session}", "ok")
        with memoryd.scope(user="ada", session="s3"):
            assert {hit.session for hit in await rt.recall("zebra")} == {"s1", "s2"}
            assert {hit.session for hit in await rt.recall("zebra", session="s1")} == {"s1"}
            labelled = await rt.recall("zebra", labels={"agent": "agent of s2"})
            assert {hit.session for hit in labelled} == {"s2"}


async def test_private_holds_for_the_whole_session_over_restarts(tmp_path: Path) -> None:
    for _ in range(2):
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="hidden", private=True):
                assert rt.sync_turn(SECRET, "ok").state == "off"
                assert not (await rt.store("animal", SECRET)).applied
                assert rt.mark_session("end", {"note": SECRET}).state == "off"
                assert (await rt.checkpoint([{"role": "user", "content": SECRET}])).verdict == "nothing-to-archive"
            with memoryd.scope(user="ada", session="hidden"):  # a later call that does not say it
                assert rt.sync_turn(SECRET, "ok").reason == "private"
            with memoryd.scope(user="ada", session="hidden", private=False), pytest.raises(ScopeConflict):
                rt.sync_turn(SECRET, "ok")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


async def test_an_open_session_cannot_become_private(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
        with memoryd.scope(user="ada", session="s1", private=True), pytest.raises(ScopeConflict):
            rt.sync_turn("zebra", "ok")


async def test_a_copied_profile_is_recognised_and_not_served(tmp_path: Path) -> None:
    import shutil

    async with memoryd.open_runtime(tmp_path, "work") as rt:
        await fill(rt)
    source, target = open_profile(tmp_path, "work").directory, profile_directory(tmp_path, "home")
    shutil.copytree(source, target)
    with pytest.raises(ProfileMismatch):
        async with memoryd.open_runtime(tmp_path, "home"):
            pass
