"""The gate fails closed, says why, names every way out, and is never closed for ever."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memoryd.checkpoint import Archive, Gate, gate_mode, refusal
from memoryd.core import GateMode, canonical_bytes
from memoryd.errors import CheckpointBlocked, StoreFull
from memoryd.store import ProfileStore, open_profile
from memoryd.testing import Fault, FaultyVFS

Talk = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def disk() -> Iterator[FaultyVFS]:
    with FaultyVFS("gate disk") as disk:
        yield disk


@pytest.fixture
def gate(profile: ProfileStore, disk: FaultyVFS) -> Iterator[Gate]:
    gate = Gate(profile, environ={}, vfs=disk.name)
    yield gate
    disk.heal()
    gate.close()


def full(disk: FaultyVFS) -> None:
    disk.arm(Fault("write", "ENOSPC", lasting=True))


def blocked(gate: Gate, rows: Any, session: str = "s") -> CheckpointBlocked:
    with pytest.raises(CheckpointBlocked) as caught:
        gate.checkpoint(rows, user="u", session=session)
    return caught.value


def test_an_archived_transcript_is_allowed(gate: Gate, talk: Talk) -> None:
    receipt = gate.checkpoint(talk(4), user="u", session="s", host="h", trigger="auto")
    assert receipt
    assert receipt.warning == ""
    assert gate.shelf.restore(receipt.id).rows == tuple(map(canonical_bytes, talk(4)))


@pytest.mark.parametrize(("rows", "private"), [(None, False), ([], False), ((), False), ([{"role": "user", "content": "x"}], True)])
def test_nothing_to_archive_is_allowed_and_said(gate: Gate, disk: FaultyVFS, rows: Any, private: bool) -> None:
    full(disk)
    receipt = gate.checkpoint(rows, user="u", session="s", private=private)
    assert receipt.verdict == "nothing-to-archive"
    assert not receipt
    assert gate.shelf.list() == ()


def test_a_failing_disk_refuses_with_the_reason_and_all_ways_out_and_recovers(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    rows = talk(300)
    before = json.dumps(rows)
    full(disk)
    error = blocked(gate, rows, "it's \"my\" session")
    assert error.code in str(error)
    assert error.cause == "full"
    for word in ("memoryd gate release", "--once", "MEMORYD_GATE", "gate.fallback_dir", "archive.db", "'\"'\"'"):
        assert word in str(error)
    assert json.dumps(rows) == before
    disk.heal()
    assert gate.checkpoint(rows, user="u", session="it's \"my\" session")


def test_the_message_never_holds_a_message(gate: Gate, talk: Talk) -> None:
    class Rows:
        def __iter__(self) -> Iterator[object]:
            raise ValueError("secret words")

    error = blocked(gate, Rows())
    assert error.cause == "unknown:ValueError"
    assert "secret" not in str(error)


@pytest.mark.parametrize("rows", ["text", b"bytes", {"role": "user"}, 5, object()])
def test_what_is_no_list_of_rows_is_refused(gate: Gate, rows: Any) -> None:
    blocked(gate, rows)


@pytest.mark.parametrize("session", ["", "x" * 501, None, 7])
def test_a_session_that_is_no_name_is_refused(gate: Gate, talk: Talk, session: Any) -> None:
    assert blocked(gate, talk(2), session).cause == "invalid"


def test_refusals_are_counted_and_from_the_third_on_the_way_out_comes_first(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    full(disk)
    messages = [blocked(gate, talk(2)).problem for _ in range(10)]
    assert not any("in a row" in message for message in messages[:2])
    assert all(f"refusal {number} in a row" in message for number, message in enumerate(messages, 1) if number > 2)
    assert gate.status().refusals == {"s": 10}
    disk.heal()
    gate.checkpoint(talk(2), user="u", session="s")
    assert gate.status().refusals == {}


def test_a_release_for_one_time_is_used_once_even_when_many_ask(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    gate.release("s", once=True)
    full(disk)
    outcomes: list[str] = []

    def ask() -> None:
        try:
            outcomes.append(gate.checkpoint(talk(2), user="u", session="s").verdict)
        except CheckpointBlocked:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 5 + ["released"]


def test_a_release_holds_until_cleared_and_for_its_session_only(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    gate.release("s")
    full(disk)
    for _ in range(3):
        receipt = gate.checkpoint(talk(2), user="u", session="s")
        assert receipt.verdict == "released"
        assert "could not" in receipt.warning or "full" in receipt.warning
    blocked(gate, talk(2), "another")
    assert gate.clear("s")
    assert not gate.clear("s")
    blocked(gate, talk(2))


def test_a_release_is_not_used_up_by_a_success(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    gate.release("s", once=True)
    assert gate.checkpoint(talk(2), user="u", session="s").verdict == "archived"
    full(disk)
    assert gate.checkpoint(talk(4), user="u", session="s").verdict == "released"


@pytest.mark.parametrize(
    ("configured", "word", "expected"),
    [
        ("block", "", "block"), ("warn", "", "warn"), ("off", "", "off"), ("block", "off", "off"), ("off", "block", "block"),
        ("block", " WARN ", "warn"), ("off", "nonsense", "block"), ("warn", "1", "block"),
    ],
)  # fmt: skip
def test_the_environment_wins_and_an_unknown_word_closes(configured: GateMode, word: str, expected: str) -> None:
    assert gate_mode(configured, {"MEMORYD_GATE": word})[0] == expected


@pytest.mark.parametrize(("word", "verdict"), [("warn", "warned"), ("off", "off")])
def test_modes_that_let_pass_say_that_nothing_was_archived(profile: ProfileStore, talk: Talk, word: str, verdict: str) -> None:
    (profile.directory / "archive.db").mkdir()
    gate = Gate(profile, environ={"MEMORYD_GATE": word})
    receipt = gate.checkpoint(talk(2), user="u", session="s")
    assert receipt.verdict == verdict
    assert "not archived" in receipt.warning
    assert not receipt


def test_the_second_archive_is_used_when_the_first_fails_and_says_so(profile: ProfileStore, tmp_path: Path, talk: Talk) -> None:
    (profile.directory / "archive.db").mkdir()
    gate = Gate(profile, fallback_dir=tmp_path / "a" / "second", environ={})
    receipt = gate.checkpoint(talk(4), user="u", session="s")
    assert receipt
    assert str(tmp_path / "a" / "second") in receipt.archive
    assert "because the first failed" in receipt.warning
    assert gate.shelf.restore(receipt.id[:8]).rows == tuple(map(canonical_bytes, talk(4)))
    (profile.directory / "archive.db").rmdir()
    assert gate.checkpoint(talk(4), user="u", session="s").warning == ""
    assert len(gate.shelf.list()) == 2
    assert gate.shelf.verify().ok
    gate.close()


def test_where_both_fail_both_reasons_are_given(profile: ProfileStore, tmp_path: Path, talk: Talk) -> None:
    (profile.directory / "archive.db").mkdir()
    (tmp_path / "second").write_text("in the way")
    error = blocked(Gate(profile, fallback_dir=tmp_path / "second", environ={}), talk(2))
    assert str(profile.directory / "archive.db") in str(error)
    assert str(tmp_path / "second") in str(error)


def test_the_quota_warns_from_80_percent_and_refuses_nothing(profile: ProfileStore, talk: Talk) -> None:
    gate = Gate(profile, quota_bytes=50_000, environ={})
    receipt = gate.checkpoint(talk(2000, 400), user="u", session="s")
    assert receipt
    assert "gate.quota_bytes" in receipt.warning
    gate.close()


@pytest.mark.parametrize("left", [None, b""])
def test_an_archive_that_was_there_and_is_gone_is_not_begun_anew(gate: Gate, profile: ProfileStore, talk: Talk, left: bytes | None) -> None:
    gate.checkpoint(talk(2), user="u", session="s")
    for path in profile.directory.glob("archive.db*"):
        path.unlink()
    if left is not None:
        (profile.directory / "archive.db").write_bytes(left)
    error = blocked(gate, talk(4))
    assert error.cause == "missing"
    assert "memoryd repair" in str(error)
    gate.release("s", once=True)
    assert gate.checkpoint(talk(4), user="u", session="s").verdict == "released"


def test_a_home_that_was_deleted_meanwhile_begins_anew(gate: Gate, profile: ProfileStore, talk: Talk) -> None:
    gate.checkpoint(talk(2), user="u", session="s")
    shutil.rmtree(profile.directory)
    profile = open_profile(profile.directory.parents[1], profile.name)
    receipt = Gate(profile, environ={}).checkpoint(talk(4), user="u", session="s")
    with Archive.open(profile) as fresh:
        assert fresh.restore(receipt.id).rows == tuple(map(canonical_bytes, talk(4)))


def test_a_corrupt_archive_refuses_and_keeps_the_file(gate: Gate, profile: ProfileStore, talk: Talk) -> None:
    (profile.directory / "archive.db").write_bytes(b"no database" * 1000)
    assert blocked(gate, talk(2)).cause in ("corrupt", "io")
    assert (profile.directory / "archive.db").read_bytes() == b"no database" * 1000


def test_it_ends_inside_its_deadline_and_names_the_lock(gate: Gate, profile: ProfileStore, talk: Talk) -> None:
    gate.checkpoint(talk(2), user="u", session="s")
    holder = subprocess.Popen([sys.executable, "-c", HOLD_LOCK, str(profile.directory.parent.parent)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(CheckpointBlocked) as caught:
            gate.checkpoint(talk(4), user="u", session="s", deadline_s=0.5)
        assert time.monotonic() - started < 10
        assert caught.value.cause == "locked"
        assert "archive.db" in str(caught.value)
    finally:
        holder.kill()
        holder.communicate()
    assert gate.checkpoint(talk(4), user="u", session="s")


HOLD_LOCK = """
import sys, time
from pathlib import Path
from memoryd.checkpoint import Archive
from memoryd.store import open_profile
with Archive.open(open_profile(Path(sys.argv[1]), "default")) as archive, archive._files.writer.transaction():
    print("held", flush=True)
    time.sleep(60)
"""


def test_every_call_leaves_one_receipt(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    done = gate.checkpoint(talk(4), user="u", session="a", host="h", trigger="auto", at=5)
    gate.checkpoint(None, user="u", session="b")
    full(disk)
    blocked(gate, talk(2), "c")
    gate.release("d")
    gate.checkpoint(talk(2), user="u", session="d")
    found = gate.status().receipts
    assert [(receipt["session"], receipt["verdict"]) for receipt in found] == [
        ("a", "archived"), ("b", "nothing-to-archive"), ("c", "refused"), ("d", "released"),
    ]  # fmt: skip
    first = found[0]
    assert (first["id"], first["attempt"], first["rows"], first["host"], first["trigger"], first["at"]) == (done.id, 1, 4, "h", "auto", 5)
    assert found[2]["cause"] == "full"
    assert all(receipt["ms"] >= 0 for receipt in found)


def test_receipts_are_private_and_bounded(gate: Gate, profile: ProfileStore) -> None:
    for _ in range(1500):
        gate.checkpoint(None, user="u", session="\ud800" * 100)
    path = profile.directory / "gate.receipts.jsonl"
    assert path.stat().st_size < 300_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(gate.status(receipts=50).receipts) == 50


def test_five_tries_with_failures_between_keep_one_checkpoint(gate: Gate, disk: FaultyVFS, talk: Talk) -> None:
    ids = set()
    for attempt in range(5):
        ids.add(gate.checkpoint(talk(300), user="u", session="s").id)
        disk.arm(Fault("sync", "EIO", nth=1 + attempt % 2))
        with suppress(CheckpointBlocked):
            gate.checkpoint(talk(300), user="u", session="s")
        disk.heal()
    assert len(ids) == 1
    assert len(gate.shelf.list()) == 1
    assert gate.shelf.verify().ok


def test_the_host_s_placeholder_after_a_failed_summary_is_not_what_the_user_said(gate: Gate, talk: Talk) -> None:
    whole = gate.checkpoint(talk(240), user="u", session="s")
    placeholder = {"role": "user", "content": "[CONTEXT COMPACTION - REFERENCE ONLY] Summary generation was unavailable."}
    after = gate.checkpoint([placeholder, *talk(240)[200:]], user="u", session="s")
    assert (after.rows, after.evidence) == (41, 40)
    middle = gate.shelf.restore(whole.id).rows[80:120]
    assert middle == tuple(map(canonical_bytes, talk(240)[80:120]))


def test_it_needs_no_network_no_model_and_no_trio(profile: ProfileStore) -> None:
    code = (
        "import sys, socket\n"
        "socket.socket = None\n"
        "from pathlib import Path\n"
        "from memoryd.checkpoint import Gate\n"
        "from memoryd.store import open_profile\n"
        "gate = Gate(open_profile(Path(sys.argv[1]), 'default'))\n"
        "print(gate.checkpoint([{'role': 'user', 'content': 'x'}], user='u', session='s').verdict)\n"
        "assert not {'trio', 'asyncio', 'structlog', 'honcho', 'httpx'} & set(sys.modules)\n"
    )
    home = str(profile.directory.parent.parent)
    done = subprocess.run([sys.executable, "-c", code, home], capture_output=True, text=True, check=False, env=_bare(os.environ))
    assert (done.returncode, done.stdout) == (0, "archived\n"), done.stderr


def _bare(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in ("PATH", "PYTHONPATH", "HOME")} | {"PYTHONPATH": os.getcwd()}


KILLED = """
import sys, time
from pathlib import Path
from memoryd.checkpoint import Gate
from memoryd.store import open_profile
rows = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "x" * 8190} for n in range(300)]
gate = Gate(open_profile(Path(sys.argv[1]), "default"))
print(gate.checkpoint(rows, user="u", session="s").id, flush=True)
time.sleep(60)
"""


def test_killed_the_instant_it_returns_all_300_messages_are_there(gate: Gate, profile: ProfileStore) -> None:
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(profile.directory.parent.parent)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    id = child.stdout.readline().strip()
    child.kill()
    child.communicate()
    rows = [json.loads(row) for row in gate.shelf.restore(id).rows if row is not None]
    assert [row["content"] for row in rows] == [f"{n} " + "x" * 8190 for n in range(300)]


@pytest.mark.parametrize("notes", [b"", b"{}", b"[]", b"null", b'{"released": 5, "refusals": []}', b"\xff", b'{"released": {}}'])
def test_damaged_notes_are_no_notes(gate: Gate, profile: ProfileStore, disk: FaultyVFS, talk: Talk, notes: bytes) -> None:
    (profile.directory / "gate.json").write_bytes(notes)
    full(disk)
    blocked(gate, talk(2))
    gate.release("s", once=True)
    assert gate.checkpoint(talk(2), user="u", session="s").verdict == "released"


RACE = """
import sys, time
from pathlib import Path
from memoryd.checkpoint import Gate
from memoryd.store import open_profile
gate = Gate(open_profile(Path(sys.argv[1]), "default"))
for count in range(100, 1100, 100):
    rows = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " * 100} for n in range(count)]
    receipt = gate.checkpoint(rows, user="u", session="s")
    print(receipt.id, receipt.attempt, receipt.rows, receipt.new_rows)
"""


def test_four_processes_at_once_store_each_row_once(gate: Gate, profile: ProfileStore) -> None:
    home = str(profile.directory.parent.parent)
    children = [subprocess.Popen([sys.executable, "-c", RACE, home], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    receipts = [line.split() for child in children for line in child.communicate()[0].splitlines()]
    assert [child.returncode for child in children] == [0] * 4
    assert len(receipts) == 40
    assert len({(id, attempt) for id, attempt, _, _ in receipts}) == 40
    assert len({id for id, *_ in receipts}) == 10
    assert sum(int(new) for *_, new in receipts) == 1000
    assert gate.shelf.verify().ok
    for id, _, rows, _ in receipts:
        assert len(gate.shelf.restore(id).rows) == int(rows)


def test_a_refusal_before_there_is_a_gate_has_the_same_form() -> None:
    error = refusal(StoreFull("/p: no room", path="/p"), "s")
    assert error.cause == "full"
    assert str(error).startswith("BLOCKED_MISSING_PREREQUISITE: the transcript of this session is not archived: /p: no room.")
