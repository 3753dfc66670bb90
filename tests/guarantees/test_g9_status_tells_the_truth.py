"""G9: status tells the truth: what is held, refused, behind, failing and recovered, where the files are, and nothing more."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.errors import BarrierFailed, CheckpointBlocked, JournalUnavailable
from memoryd.journal import Journal, Limits
from memoryd.store import Options, connect, open_profile, profile_directory
from memoryd.testing import Fault, FaultyVFS


async def test_a_fresh_runtime_is_ok_and_says_where_things_are(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            await rt.store("k", "v")
            await rt.drain()
            await rt.flush()
        status = await rt.status()
    assert (status.state, status.profile, status.home) == ("ok", "default", str(tmp_path))
    assert status.log is not None
    assert Path(status.log.path).exists()
    assert (status.log.head, status.log.synced, status.log.power_safe) == (2, 2, True)
    [local] = status.backends
    assert (local.name, local.role, local.cursor, local.backlog) == ("local", "primary", 2, 0)
    assert (local.rows["turns"], local.rows["memories"]) == (1, 1)
    assert status.gate.mode == "block"
    assert {task.state for task in status.tasks} == {"running"}


async def test_held_and_backlog_are_counted_while_they_last(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            await rt.drain()
            directory = open_profile(tmp_path, "default").directory
            memory = connect(directory / "memory.db", Options())
            with memory.transaction("IMMEDIATE"):
                rt.sync_turn("waits", "ok")
                with trio.fail_after(30):
                    while (await rt.status()).backends[0].state != "degraded":
                        await trio.sleep(0.02)
                local = (await rt.status()).backends[0]
                assert (local.backlog, local.degraded_since is not None, bool(local.last_error)) == (1, True, True)
                assert local.oldest_age >= 0
            log = connect(directory / "log.db", Options())
            with log.transaction("IMMEDIATE"):
                rt.sync_turn("held", "ok")
                status = await rt.status()
                assert status.log is not None
                assert (status.log.held, status.log.state, status.state) == (1, "degraded", "degraded")
            memory.close()
            log.close()
            assert await rt.drain()
            with trio.fail_after(30):
                while (await rt.status()).state != "ok":
                    await trio.sleep(0.02)
            assert (await rt.status()).backends[0].recovered_at is not None


async def test_refusals_are_counted_with_their_reason(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"log": {"max_bytes": 1}}) as rt:
        with memoryd.scope(user="ada", session="s1"), pytest.raises(JournalUnavailable):
            rt.sync_turn("zebra", "ok")
        log = (await rt.status()).log
        assert log is not None
        assert (log.refused, log.state, log.last_error) == (1, "degraded", "quota")


def test_a_failed_barrier_is_never_retried_into_a_success(tmp_path: Path) -> None:
    """The sync fails once and would succeed at the next try; the log says *not power safe* until it has been rewritten."""
    failing = False

    def fdatasync(descriptor: int) -> None:
        if failing:
            raise OSError(errno.EIO, "Input/output error")

    journal = Journal(open_profile(tmp_path, "default"), Limits(), fdatasync=fdatasync)
    from memoryd.core import Scope, Turn, new_event_id

    journal.append(Turn(new_event_id(), Scope(user="u", session="s"), 1, "a", "b"))
    failing = True
    with pytest.raises(BarrierFailed):
        journal.barrier()
    assert not journal.power_safe
    failing = False
    reader = connect(journal.path, Options(readonly=True))
    with reader.transaction("DEFERRED"):  # a reader that pins the log keeps it from being rewritten
        reader.all("SELECT count(*) FROM event")
        journal.append(Turn(new_event_id(), Scope(user="u", session="s"), 2, "a", "b"))
        with pytest.raises(BarrierFailed):
            journal.barrier()
        assert not journal.power_safe
    reader.close()
    assert journal.barrier() == 2
    assert journal.power_safe
    journal.close()


@pytest.mark.parametrize("store", ["memory.db", "archive.db"])
async def test_a_corrupt_store_is_broken_and_the_rest_goes_on(tmp_path: Path, store: str) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(50):
                rt.sync_turn(f"zebra {n}" * 50, "ok")
            await rt.store("k", "v")
            await rt.checkpoint([{"role": "user", "content": f"zebra {n}" * 50} for n in range(50)])
            await rt.drain()
    path = open_profile(tmp_path, "default").directory / store
    data = bytearray(path.read_bytes())
    for offset in range(4096, len(data), 4096):
        data[offset : offset + 64] = b"\xa5" * 64
    path.write_bytes(bytes(data))
    answers: dict[str, Any] = {}
    try:
        async with memoryd.open_runtime(tmp_path, config={"logging": {"level": "off"}}, on_bug="contain") as rt:
            with memoryd.scope(user="ada", session="s1"):
                answers["append"] = rt.sync_turn("still accepted", "ok").state
                await trio.sleep(0.3)
                answers["state"] = (await rt.status()).state
    except memoryd.errors.StoreCorrupt as error:
        answers["refused"] = str(error)
    assert answers.get("append") == "journaled" or store in answers.get("refused", "")
    assert answers.get("state") in (None, "broken", "degraded") or store == "archive.db"


async def test_status_never_holds_a_text(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("vertraulich", "vertraulich")
            await rt.store("k", "vertraulich")
            assert "vertraulich" not in repr(await rt.status())


async def test_the_gate_is_shown_as_it_would_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyVFS("g9") as disk:
        async with memoryd.open_runtime(tmp_path, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                disk.arm(Fault("write", "EIO", lasting=True))
                with pytest.raises(CheckpointBlocked):
                    await rt.checkpoint([{"role": "user", "content": "x"}])
                disk.heal()
                status = await rt.status()
                gate = status.gate
                assert (gate.mode, gate.refusals, gate.last_verdict) == ("block", 1, "refused")
                assert (status.state, gate.state, gate.last_error) == ("degraded", "degraded", "")
                assert any("memoryd gate status" in note for note in status.notes)
                await rt.checkpoint([{"role": "user", "content": "x"}])
                status = await rt.status()
                gate = status.gate
                assert (gate.refusals, gate.last_verdict) == (0, "archived")
                assert (status.state, gate.state, status.notes) == ("ok", "ok", ())
            monkeypatch.setenv("MEMORYD_GATE", "warn")
            assert (await rt.status()).gate.mode == "warn"


async def test_a_damaged_memory_that_is_mended_meanwhile_is_ok_again(tmp_path: Path) -> None:
    config = {"logging": {"level": "off"}}
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            await rt.drain()
    memory = profile_directory(tmp_path, "default") / "memory.db"
    memory.write_bytes(b"\xa5" * 8192)
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert (await rt.status()).state == "broken"
            assert (await rt.recall("zebra")).stale
            memory.unlink()
            with trio.fail_after(30):
                while (await rt.status()).state != "ok":
                    await trio.sleep(0.02)
            found = await rt.recall("zebra")
            assert ([hit.text for hit in found], found.stale) == (["zebra"], False)
            local = (await rt.status()).backends[0]
            assert (local.degraded_since, local.recovered_at is not None) == (None, True)


@pytest.mark.parametrize("store", ["log", "memory"])
async def test_ok_is_said_after_a_real_write_and_no_longer_while_a_store_is_locked(tmp_path: Path, store: str) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            await rt.drain()
    async with memoryd.open_runtime(tmp_path) as rt:  # nothing is written to it: only status itself can notice
        other = connect(profile_directory(tmp_path, "default") / f"{store}.db", Options())
        with other.transaction("IMMEDIATE"):
            status = await rt.status()
            assert status.state == "degraded"
            assert any(note.startswith((f"{store}: a write failed", "local: a write failed")) for note in status.notes)
            assert any("is locked by another process" in note for note in status.notes)
        other.close()
        assert (await rt.status()).state == "ok"
        assert not (await rt.status()).notes


async def test_an_archive_that_cannot_be_read_is_no_gate(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            await rt.checkpoint([{"role": "user", "content": "zebra"}])
        assert (await rt.status()).state == "ok"
    archive = profile_directory(tmp_path, "default") / "archive.db"
    archive.write_bytes(b"\xa5" * 8192)
    async with memoryd.open_runtime(tmp_path) as rt:
        status = await rt.status()
        assert (status.state, status.gate.state, status.gate.last_error) == ("broken", "broken", "StoreCorrupt")
    async with memoryd.open_runtime(tmp_path, config={"gate": {"fallback_dir": str(tmp_path / "second")}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert (await rt.checkpoint([{"role": "user", "content": "zebra"}])).warning
        assert (await rt.status()).state == "degraded"
