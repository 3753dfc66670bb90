"""Replay and import are killed in their middle and run again: in the end all is there, once for a reader, in order."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from random import Random

import memoryd
from memoryd.core import Config
from memoryd.runtime import export_events
from memoryd.testing import CrashChild

COUNT = 400
ROWS = 4000
CHILD = str(Path(__file__).with_name("child_import.py"))
SHELF = Path(__file__).with_name("shelf.py")


async def fill(home: Path) -> list[str]:
    """A home with many turns, a deletion and a forget; the ids of its events, in order."""
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session="s1"):
            accepted = [rt.sync_turn(f"turn {number}", "ok") for number in range(COUNT)]
            await rt.delete("nothing")
            await rt.forget(accepted[7].event_id)
    return [one.event_id for one in accepted]


def lines(path: Path) -> list[list[str]]:
    """The whole lines of a file that is being written, parsed."""
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def wait_until_longer(path: Path, than: int) -> None:
    deadline = time.monotonic() + 60
    while len(lines(path)) <= than and time.monotonic() < deadline:
        time.sleep(0.002)
    assert len(lines(path)) > than


async def test_a_replay_that_is_killed_goes_on(private_home: Path, tmp_path: Path) -> None:
    ids = await fill(private_home)
    shelf = tmp_path / "shelf.jsonl"
    (private_home / "plugins").mkdir()
    shutil.copy(SHELF, private_home / "plugins/shelf.py")
    (private_home / "memoryd.toml").write_text(f'delivery.batch_events = 20\n[backends.shelf]\npath = "{shelf}"\n', "utf-8")
    replay = ["-m", "memoryd", "replay", "--to", "shelf", "--json"]
    for _ in range(3):
        with CrashChild(replay) as child:
            wait_until_longer(shelf, len(lines(shelf)) + 50)
            child.kill()
    killed = len(lines(shelf))
    with CrashChild(replay) as child:
        (said,) = child.wait(60)
    done = json.loads(said)
    assert 1 < done["first"] <= killed, "it did not begin again"
    assert done["last"] == COUNT + 2
    arrived = lines(shelf)
    assert len(arrived) <= COUNT + 2 + 3 * 20, "at most one batch came twice for each kill"
    assert list(dict.fromkeys(id for id, _, _ in arrived))[:COUNT] == ids
    kinds = {id: kind for id, kind, _ in arrived}
    assert list(kinds.values())[-2:] == ["Deletion", "Forget"]
    assert kinds[ids[7]] == "Erased"
    assert all(text != "turn 7" for _, _, text in arrived)


def export_of(count: int) -> bytes:
    """An export of that many memories."""
    scope, at = {"user": "ada"}, "2026-01-01T00:00:00+00:00"
    same = {"kind": "memory", "at": at, "scope": scope, "value": "x" * 200, "type": "t", "metadata": {}}
    rows = [{"kind": "memory", "id": f"{n:032x}", **same, "key": f"k{n}"} for n in range(count)]
    head = {"format": "memoryd-export", "version": 1, "user": "ada"}
    return b"".join(json.dumps(row).encode() + b"\n" for row in (head, *rows, {"end": count}))


def test_an_import_that_is_killed_goes_on(private_home: Path, tmp_path: Path) -> None:
    source, result = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes(export_of(ROWS))
    child_import = [CHILD, str(private_home), str(source)]
    random = Random(4)
    for part in (1, 2, 3):
        with CrashChild(child_import) as child:  # every line is told twice: when it was checked, and when it was taken
            child.kill_after(ROWS + part * ROWS // 4, within=0.02, random=random)
    with CrashChild(child_import) as child:
        events, added = map(int, child.wait(60)[-1].split())
    assert events == ROWS
    assert 0 < added < ROWS, "it was killed in its middle"
    with open(result, "wb") as stream:
        export_events(private_home, "default", Config(), "ada", stream)
    exported, given = (path.read_bytes().splitlines() for path in (result, source))
    assert [json.loads(line)["id"] for line in exported[1:-1]] == [json.loads(line)["id"] for line in given[1:-1]]
