"""Before a compaction: the host's rows are archived, or it is refused with every way out; contract v2, and best effort on older hosts."""

from __future__ import annotations

import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memoryd.blocking import Memory
from memoryd.core import CheckpointInfo, scope
from memoryd.errors import CheckpointBlocked
from memoryd.testing import Fault, FaultyVFS
from memoryd_hermes import MemorydProvider
from tests.adapters.hermes.manager import Blocked, Manager, agent, evidence, said, store_of, turns, wrapped

HISTORY = said(("My cat is called Hugo", "A fine name."), ("The deploy host is called kestrel", "Noted."))


def archived(home: Path, user: str = "default") -> list[CheckpointInfo]:
    with Memory(store_of(home)) as memory, scope(user=user):
        assert memory.verify().ok
        return memory.checkpoints()


def texts(home: Path, user: str = "default") -> list[Any]:
    """The contents of the newest checkpoint's rows, from the store."""
    with Memory(store_of(home)) as memory, scope(user=user):
        return [json.loads(row)["content"] for row in memory.restore(memory.checkpoints()[0].id).rows if row is not None]


def test_the_version_is_a_constant_of_the_class() -> None:
    assert MemorydProvider.pre_compress_checkpoint_api_version == 2
    assert "pre_compress_checkpoint_api_version" not in vars(MemorydProvider())


def test_a_compaction_goes_on_with_its_rows_archived(tmp_path: Path) -> None:
    with agent(tmp_path) as manager:
        kept, text = manager.compact(HISTORY, required=True)
    assert len(kept) == 3
    [info] = archived(tmp_path)
    assert text == f"memoryd checkpoint {info.id}: 4 messages archived, 4 new rows"
    assert "\n" not in text and len(text) < 200
    assert (info.session, info.count, info.attempts[0].host, info.attempts[0].trigger) == ("s1", 4, "hermes", "required")
    assert texts(tmp_path) == [row["content"] for row in HISTORY]


@pytest.mark.parametrize("required", [True, False], ids=["keyword", "bare"])
def test_a_failed_write_raises_in_both_forms(tmp_path: Path, required: bool) -> None:
    with FaultyVFS(f"hermes-refuse-{required}") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(tmp_path, provider=provider):
            disk.arm(Fault("write", "ENOSPC", lasting=True))
            with pytest.raises(CheckpointBlocked) as blocked:
                provider.on_pre_compress(HISTORY, require_checkpoint=True) if required else provider.on_pre_compress(HISTORY)
            said_ = str(blocked.value)
            for way in ("BLOCKED_MISSING_PREREQUISITE", "full", "gate release s1", "memoryd --home ", "MEMORYD_GATE=warn or off", "gate.fallback_dir"):
                assert way in said_
            disk.heal()
            assert "4 messages archived" in provider.on_pre_compress(HISTORY)
    assert len(archived(tmp_path)) == 1


def test_a_full_disk_refuses_the_compaction_no_message_is_lost_and_it_goes_through_by_itself(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = []
    with FaultyVFS("hermes-gate") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(tmp_path, provider=provider) as manager:
            for number in range(4):
                manager.turn(number, f"turn {number}", f"answer {number}", history)
            assert manager.flush_pending()
            disk.arm(Fault("write", "ENOSPC", lasting=True))
            for number in (4, 5):  # the host's turn fails before its call: only its text is there
                history.append({"role": "user", "content": f"refused turn {number}", "message_uid": None})
                before = copy.deepcopy(history)
                with pytest.raises(Blocked) as blocked:
                    manager.compact(history, required=True)
                assert history == before
                assert "full" in str(blocked.value.__cause__)
            disk.heal()
            manager.turn(6, "turn 6", "answer 6", history)
            assert manager.flush_pending()
            kept, text = manager.compact(history, required=True)
    assert len(kept) < len(history) and "12 messages archived" in text
    assert texts(tmp_path) == [row["content"] for row in history]
    expected = {*(f"turn {number}" for number in (0, 1, 2, 3, 6)), "refused turn 4", "refused turn 5"}
    assert sorted(user for user, _ in turns(tmp_path)) == sorted(expected)


def test_a_store_that_cannot_be_opened_refuses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_of(tmp_path).write_text("a file is in the way")
    with agent(tmp_path) as manager:
        with pytest.raises(Blocked) as blocked:
            manager.compact(HISTORY, required=True)
        assert all(way in str(blocked.value.__cause__) for way in ("memoryd-store", "gate release s1", "MEMORYD_GATE", "gate.fallback_dir"))
        monkeypatch.setenv("MEMORYD_GATE", "off")
        assert manager.provider.on_pre_compress(HISTORY, require_checkpoint=True) == "memoryd: not archived, the gate is open"
        monkeypatch.delenv("MEMORYD_GATE")
        store_of(tmp_path).unlink()
        _, text = manager.compact(HISTORY, required=True)
    assert "4 messages archived" in text and len(archived(tmp_path)) == 1


def test_settings_that_cannot_be_read_refuse_with_the_file_to_mend(tmp_path: Path) -> None:
    (tmp_path / "memoryd").mkdir()
    (tmp_path / "memoryd" / "config.json").write_text("{broken")
    with agent(tmp_path) as manager, pytest.raises(Blocked) as blocked:
        manager.compact(HISTORY, required=True)
    assert "config.json" in str(blocked.value.__cause__) and "checkpoint_required" in str(blocked.value.__cause__)


@pytest.mark.parametrize(("mode", "said_"), [("off", "memoryd: off"), ("warn", "memoryd: warned")])
def test_the_gate_can_be_opened_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, said_: str) -> None:
    monkeypatch.setenv("MEMORYD_GATE", mode)
    with FaultyVFS(f"hermes-{mode}") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(tmp_path, provider=provider):
            disk.arm(Fault("write", "ENOSPC", lasting=True))
            assert provider.on_pre_compress(HISTORY, require_checkpoint=True) == said_
            disk.heal()


def test_a_release_lets_one_session_pass(tmp_path: Path) -> None:
    import subprocess
    import sys

    with FaultyVFS("hermes-release") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(tmp_path, provider=provider) as manager:
            disk.arm(Fault("write", "ENOSPC", file="wal", lasting=True))
            with pytest.raises(Blocked):
                manager.compact(HISTORY, required=True)
            command = [sys.executable, "-m", "memoryd", "--home", str(store_of(tmp_path)), "gate", "release", "s1", "--once"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            _, text = manager.compact(HISTORY, required=True)
            assert text == "memoryd: released"
            with pytest.raises(Blocked):
                manager.compact(HISTORY, required=True)
            disk.heal()


def test_a_second_archive_takes_what_the_first_cannot(tmp_path: Path) -> None:
    (tmp_path / "memoryd").mkdir()
    (tmp_path / "memoryd" / "config.json").write_text(json.dumps({"gate_fallback_dir": str(tmp_path / "second")}))
    with agent(tmp_path) as manager:
        archive = next(store_of(tmp_path).glob("profiles/*/"))
        for path in archive.glob("archive.db*"):
            path.unlink()
        (archive / "archive.db").mkdir()
        _, text = manager.compact(HISTORY, required=True)
    assert "4 messages archived, 4 new rows, in the second archive" in text
    assert list((tmp_path / "second").rglob("archive.db"))


def test_repeated_overlapping_and_grown_transcripts(tmp_path: Path) -> None:
    grown = HISTORY + said(("and more", "ok"))
    with agent(tmp_path) as manager:
        first = manager.provider.on_pre_compress(HISTORY)
        again = manager.provider.on_pre_compress(HISTORY, require_checkpoint=True)
        more = manager.provider.on_pre_compress(grown, require_checkpoint=False)
        tail = manager.provider.on_pre_compress(grown[-2:])
    assert first.split(":")[0] == again.split(":")[0] and "0 new rows" in again
    assert "6 messages archived, 2 new" in more and "2 messages archived" in tail
    assert len(archived(tmp_path)) == 3


def test_calls_that_overlap_themselves(tmp_path: Path) -> None:
    """A stalled attempt is retried by the host while the old one still runs."""
    history = said(*((f"turn {number}", "words " * 50) for number in range(200)))
    with agent(tmp_path) as manager, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: manager.provider.on_pre_compress(history, require_checkpoint=True), range(8)))
    assert len({text.split(":")[0] for text in found}) == 1
    assert len(archived(tmp_path)) == 1 and len(texts(tmp_path)) == 400


def test_only_role_and_words_are_identity_and_the_host_s_rows_stay_as_they_are(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "what is it?", "message_uid": None, "timestamp": 1.0, "_row_id": 4, "_db_row_snapshot": {"a": 1}},
        {"role": "assistant", "content": [{"type": "text", "text": "A cat."}], "reasoning": "hm", "finish_reason": "stop"},
        {"role": "user", "content": [{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
    ]
    other = [
        {"role": "user", "content": "what is it?\r\n", "message_uid": "a" * 32, "timestamp": 2.0, "_row_id": 9, "api_content": wrapped("x")},
        {"role": "assistant", "content": "A cat.", "_db_persisted": True},
        {"role": "user", "content": "and this?"},
    ]
    before = copy.deepcopy(rows)
    with agent(tmp_path) as manager:
        one = manager.provider.on_pre_compress(rows)
        two = manager.provider.on_pre_compress(other)
    assert rows == before
    assert one.split(":")[0] == two.split(":")[0]
    assert len(archived(tmp_path)) == 1


def test_recall_inside_of_a_row_is_not_archived(tmp_path: Path) -> None:
    with agent(tmp_path) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
        assert manager.flush_pending()
        block = manager.recalled("what is my cat called?")
        asked = f"what is my cat called?\n\n{block}"
        rows = [{"role": "user", "content": [{"type": "text", "text": asked}], "api_content": asked}]
        manager.provider.on_pre_compress(rows)
    assert texts(tmp_path) == [[{"type": "text", "text": "what is my cat called?"}]]
    kept = b"".join(path.read_bytes() for path in store_of(tmp_path).rglob("archive.db*"))
    assert b"Hugo" not in kept


def test_a_changed_row_forks_and_both_are_kept(tmp_path: Path) -> None:
    masked = said(("My cat is called [masked]", "A fine name."), ("The deploy host is called kestrel", "Noted."))
    with agent(tmp_path) as manager:
        manager.provider.on_pre_compress(HISTORY)
        manager.provider.on_pre_compress(masked)
    with Memory(store_of(tmp_path)) as memory, scope(user="default"):
        kept = {json.loads(memory.restore(info.id).rows[0] or b"null")["content"] for info in memory.checkpoints()}
    assert kept == {"My cat is called Hugo", "My cat is called [masked]"}


@pytest.mark.parametrize("rows", [[], (), None, [None], ["text"], [{"role": "user"}], [{"role": "tool", "content": "x"}], [{1: object()}]])
def test_rows_that_say_nothing_are_no_failure(tmp_path: Path, rows: Any) -> None:
    with agent(tmp_path) as manager:
        assert manager.provider.on_pre_compress(rows, require_checkpoint=True).startswith("memoryd")


def test_a_host_with_the_old_contract_goes_on_whatever_happens(tmp_path: Path) -> None:
    """There it is best effort: the error is logged and the compaction goes on."""
    with FaultyVFS("hermes-old") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(tmp_path, contexts=False, provider=provider) as manager:
            disk.arm(Fault("write", "ENOSPC", lasting=True))
            kept, text = manager.compact(HISTORY, required=True)
            disk.heal()
            assert len(kept) == 3 and text == ""
            assert [type(error) for error in manager.errors] == [CheckpointBlocked]


def test_a_checkpoint_before_initialize_is_refused() -> None:
    with pytest.raises(CheckpointBlocked, match="not initialized"):
        MemorydProvider().on_pre_compress(HISTORY)


def test_the_evidence_is_the_host_s_not_the_raw_list(tmp_path: Path) -> None:
    raw = [
        {"role": "system", "content": "You are an agent"},
        *HISTORY,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "lines"},
        {"role": "user", "content": "a summary", "_compressed_summary": True},
    ]
    assert evidence(raw) == HISTORY
    with agent(tmp_path) as manager:
        manager.compact(raw, required=True)
        raw_text = manager.provider.on_pre_compress(raw)  # a host with the old contract gives it whole
    assert "4 messages archived" in raw_text and len(archived(tmp_path)) == 1


def test_another_thread_than_the_one_that_initialized(tmp_path: Path) -> None:
    found: list[str] = []
    with agent(tmp_path) as manager:
        thread = threading.Thread(target=lambda: found.append(manager.provider.on_pre_compress(HISTORY)), name="compress-ctx-timeout_0")
        thread.start()
        thread.join(60)
    assert "4 messages archived" in found[0]


def test_driven_twice_in_one_process_two_homes_have_two_archives(tmp_path: Path) -> None:
    managers: list[Manager] = []
    for name in "ab":
        (tmp_path / name).mkdir()
        with agent(tmp_path / name) as manager:
            manager.compact(said((f"I am {name}", "ok")), required=True)
            managers.append(manager)
    assert texts(tmp_path / "a") == ["I am a", "ok"] and texts(tmp_path / "b") == ["I am b", "ok"]
