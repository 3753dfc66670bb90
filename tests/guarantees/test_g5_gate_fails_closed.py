"""G5: the gate fails closed, and never for ever.  The archive's own tests are in tests/unit/checkpoint; here is the runtime's door."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.errors import CheckpointBlocked, CheckpointNotFound, JournalUnavailable
from memoryd.store import Options, connect, open_profile
from memoryd.testing import Fault, FaultyVFS

TRANSCRIPT: list[Any] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "I live in Turin.", "message_uid": "m1"},
    {"role": "assistant", "content": "Noted.", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
    {"role": "assistant", "content": None},
]


async def restored(rt: memoryd.Runtime, id: str) -> list[Any]:
    import json

    return [json.loads(row) for row in (await rt.restore(id)).rows if row is not None]


async def test_a_receipt_means_that_every_row_comes_back(tmp_path: Path) -> None:
    given = copy.deepcopy(TRANSCRIPT)
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            receipt = await rt.checkpoint(given, host="python", trigger="manual")
            assert (receipt.verdict, receipt.rows, receipt.degraded) == ("archived", 6, 0)
            assert await restored(rt, receipt.id) == TRANSCRIPT
            assert (await rt.verify()).ok
    assert given == TRANSCRIPT, "the host's objects were changed"


@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("kind", ["EIO", "ENOSPC"])
async def test_a_failing_disk_refuses_with_reason_and_way_out(tmp_path: Path, operation: Any, kind: Any) -> None:
    with FaultyVFS(f"g5-{operation}-{kind}") as disk:
        async with memoryd.open_runtime(tmp_path, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                disk.arm(Fault(operation, kind, lasting=True))
                with pytest.raises(CheckpointBlocked) as caught:
                    await rt.checkpoint(TRANSCRIPT)
                assert str(caught.value).startswith("BLOCKED_MISSING_PREREQUISITE: ")
                assert "MEMORYD_GATE" in caught.value.remedy
                assert "gate release" in caught.value.remedy
                assert caught.value.cause
                disk.heal()
                receipt = await rt.checkpoint(TRANSCRIPT)
                assert receipt.verdict == "archived"
                assert await restored(rt, receipt.id) == TRANSCRIPT


async def test_a_locked_archive_refuses_at_its_deadline_and_names_the_lock(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"deadlines": {"checkpoint": 0.4}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            await rt.checkpoint(TRANSCRIPT)
            other = connect(open_profile(tmp_path, "default").directory / "archive.db", Options())
            with other.transaction("IMMEDIATE"), pytest.raises(CheckpointBlocked) as caught:
                await rt.checkpoint([*TRANSCRIPT, {"role": "user", "content": "more"}])
            other.close()
            assert caught.value.cause == "locked"
            assert "lock" in str(caught.value)
            assert (await rt.checkpoint([*TRANSCRIPT, {"role": "user", "content": "more"}])).verdict == "archived"


async def test_the_gate_needs_no_log_and_no_backend(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"backend": "null"}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            receipt = await rt.checkpoint(TRANSCRIPT)
            assert receipt.verdict == "archived"
            assert await restored(rt, receipt.id) == TRANSCRIPT
    assert not (open_profile(tmp_path, "default").directory / "log.db").exists()


async def test_a_broken_log_does_not_refuse_a_checkpoint(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            other = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
            with other.transaction("IMMEDIATE"):
                assert (await rt.checkpoint(TRANSCRIPT)).verdict == "archived"
            other.close()


@pytest.mark.parametrize(("mode", "verdict"), [("warn", "warned"), ("off", "off")])
async def test_the_way_out_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, verdict: str) -> None:
    monkeypatch.setenv("MEMORYD_GATE", mode)
    with FaultyVFS(f"g5-mode-{mode}") as disk:
        async with memoryd.open_runtime(tmp_path, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                disk.arm(Fault("write", "EIO", lasting=True))
                receipt = await rt.checkpoint(TRANSCRIPT)
                assert (receipt.verdict, bool(receipt.warning)) == (verdict, True)
                disk.heal()


async def test_a_second_archive_takes_over(tmp_path: Path) -> None:
    config = {"gate": {"fallback_dir": str(tmp_path / "elsewhere")}}
    async with memoryd.open_runtime(tmp_path / "home", config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            await rt.checkpoint(TRANSCRIPT)
            other = connect(open_profile(tmp_path / "home", "default").directory / "archive.db", Options())
            with other.transaction("IMMEDIATE"):
                receipt = await rt.checkpoint([*TRANSCRIPT, {"role": "user", "content": "more"}])
            other.close()
            assert receipt.verdict == "archived"
            assert "elsewhere" in receipt.archive
            assert receipt.warning
            assert (await restored(rt, receipt.id))[-1] == {"role": "user", "content": "more"}


async def test_nothing_to_archive_is_allowed_and_said(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert (await rt.checkpoint(None)).verdict == "nothing-to-archive"
        with memoryd.scope(user="ada", session="s2", private=True):
            assert (await rt.checkpoint(TRANSCRIPT)).verdict == "nothing-to-archive"
            assert not await rt.checkpoints()


ODD_ROWS: list[Any] = ["just text", 7, None, ["list"], {"no": "content"}, {"role": "user", "content": float("nan")}, {"role": "user", "content": b"bytes"}, object()]


async def test_odd_rows_are_kept_counted_and_never_refused(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            receipt = await rt.checkpoint([*TRANSCRIPT, *ODD_ROWS])
            assert receipt.rows == len(TRANSCRIPT) + len(ODD_ROWS)
            assert receipt.degraded > 0
            assert "just text" in await restored(rt, receipt.id)


async def test_overlapping_checkpoints_agree(tmp_path: Path) -> None:
    receipts: list[memoryd.Receipt] = []

    async def take(rt: memoryd.Runtime) -> None:
        receipts.append(await rt.checkpoint(TRANSCRIPT))

    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(take, rt)
            assert len({receipt.id for receipt in receipts}) == 1
            assert sum(receipt.new_rows for receipt in receipts) == len(TRANSCRIPT)
            with pytest.raises(CheckpointNotFound):
                await rt.restore("00" * 16)


async def test_a_log_that_cannot_be_opened_refuses_turns_but_not_checkpoints_and_comes_back(tmp_path: Path) -> None:
    directory = open_profile(tmp_path, "default").directory
    (directory / "log.db").mkdir()  # nothing that SQLite could open
    async with memoryd.open_runtime(tmp_path, config={"logging": {"level": "off"}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            with pytest.raises(JournalUnavailable):
                rt.sync_turn("hello", "hi")
            assert (await rt.checkpoint(TRANSCRIPT)).verdict == "archived"
            status = await rt.status()
            assert status.log is not None
            assert (status.state, status.log.state) == ("broken", "broken")
            (directory / "log.db").rmdir()
            with trio.fail_after(30):
                while (await rt.status()).state != "ok":
                    await trio.sleep(0.05)
            assert rt.sync_turn("hello again", "hi").state == "journaled"
            assert [hit.text for hit in await rt.recall("hello again")][0] == "hello again"
