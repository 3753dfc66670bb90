"""Forget erases: from every file, for good, whatever was killed meanwhile; and it erases nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

import memoryd
from memoryd.core import Forgotten, Turn
from memoryd.errors import DeadlineExceeded
from memoryd.journal import Journal, Limits
from memoryd.store import Options, connect, open_profile
from memoryd.testing import CrashChild

CHILD = Path(__file__).with_name("child_forget.py")
GREP = r"""
import json, pathlib, re, sys, zlib

def unpacked(data):  # every compressed stream, or what is left of one
    for start in re.finditer(rb"x\x01", data):
        stream, out = zlib.decompressobj(), b""
        try:
            for at in range(start.start(), min(len(data), start.start() + 65536), 16):
                out += stream.decompress(data[at:at + 16])
        except zlib.error:
            pass
        yield out

files = {str(p): p.read_bytes() for p in pathlib.Path(sys.argv[1]).rglob("*") if p.is_file()}
texts = {name: b"\n".join([data, *unpacked(data)]) for name, data in files.items()}
print(json.dumps({w: sorted(n for n, text in texts.items() if w.encode() in text) for w in json.loads(sys.argv[2])}))
"""
CONFIG = {"recall": {"spill_chars": 1200, "budget_chars": 8000}, "deadlines": {"prefetch": 10.0}}
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def grep(home: Path, words: Sequence[str]) -> dict[str, list[str]]:
    """Which files below ``home`` hold which word, plain or compressed, looked up by another process."""
    done = subprocess.run([sys.executable, "-c", GREP, str(home), json.dumps(list(words))], capture_output=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def rows(*texts: str) -> list[dict[str, str]]:
    """A transcript: the user's and the assistant's texts in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


async def forget(rt: memoryd.Runtime, **what: Any) -> Forgotten:
    done = await rt.forget(**what)
    assert done.pending == 0
    return done


# -- every way to name what goes, and every file -------------------------------------------------------------------------------

ADA_S1 = ["zqsaid", "zqanswer", "zqedited", "zqtool", "zqmark", "zqsource", "zqlater"]
ADA_KEY = ["zqvalueone", "zqvaluetwo", "zqmetadata"]
ADA_S2 = ["zqother"]
BOB = ["zqbobsaid", "zqbobvalue", "zqbobanswer"]
ALL = [*ADA_S1, *ADA_KEY, *ADA_S2, *BOB]


async def plant(home: Path) -> dict[str, str]:
    """Two users, two sessions, memories with a history, edits, checkpoints with sources, a spilled recall; ids by name."""
    async with memoryd.open_runtime(home, config=CONFIG) as rt:
        with memoryd.scope(user="bob", session="s1"):
            rt.sync_turn("zqbobsaid", "zqbobanswer")
            await rt.store("k", "zqbobvalue")
            await rt.checkpoint(rows("zqbobsaid", "zqbobanswer"))
        with memoryd.scope(user="ada", session="s2"):
            rt.sync_turn("zqother", "kept", created_at=EARLY)
            await rt.checkpoint(rows("zqother", "kept"))
        with memoryd.scope(user="ada"):
            await rt.store("k", "zqvalueone", {"note": "zqmetadata"}, created_at=EARLY)
            await rt.store("k", "zqvaluetwo", created_at=EARLY)
            memory = await rt.retrieve("k")
            assert memory is not None
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn("zqsaid", "zqanswer", created_at=LATE)
            await rt.drain()
            await rt.edit(turn.event_id, user="zqedited")
            rt.sync_turn("zqlater", "later", created_at=LATE)
            rt.mark_session("branch", {"note": "zqmark"})
            transcript = [*rows("zqsaid"), {"role": "tool", "content": "zqtool"}, *rows("", "zqanswer")[1:], *rows("zqlater", "later")]
            source = b"\n".join([b'{"text": "zqsaid"}', b'{"text": "zqanswer", "note": "zqsource"}', b'{"text": "zqlater"}', b""])
            await rt.checkpoint(transcript, source=source)
            for n in range(40):
                rt.sync_turn(f"filler {n} " + "word " * 200, "zqedited is not here")
            await rt.drain()
            assert "whole text is in" in (await rt.prefetch("zqlater filler word")).text
            spilled = [path.read_text() for path in (open_profile(home, "default").directory / "spill").iterdir()]
            assert "zqlater" in spilled[0]
    return {"turn": turn.event_id, "memory": memory.id}


CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a turn by id": ("s1", {"id": "turn"}, ["zqsaid", "zqanswer", "zqtool", "zqsource"]),
    "a memory by id": ("s2", {"id": "memory"}, ADA_KEY),
    "a key": ("s2", {"key": "k"}, ADA_KEY),
    "a session": ("s2", {"session": "s1"}, ADA_S1),
    "a span of time": ("s2", {"since": EARLY, "until": LATE}, [*ADA_KEY, *ADA_S2]),
    "everything of a user": ("s2", {"everything": True}, [*ADA_S1, *ADA_KEY, *ADA_S2]),
}


@pytest.mark.parametrize("case", CASES)
async def test_no_byte_is_left_and_nothing_else_goes(tmp_path: Path, case: str) -> None:
    session, what, gone = CASES[case]
    ids = await plant(tmp_path)
    assert [word for word, files in grep(tmp_path, ALL).items() if not files] == [], "every word has to be there before"
    if "id" in what:
        what = {"id": ids[what["id"]]}
    async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
        with memoryd.scope(user="ada", session=session):
            done = await forget(rt, **what)
            assert done.erased
            for word in gone:
                assert not await rt.recall(word)
    found = grep(tmp_path, ALL)
    assert {word: found[word] for word in gone} == {word: [] for word in gone}
    assert [word for word in ALL if not found[word]] == [word for word in ALL if word in gone]
    async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
        assert (await rt.status()).log.erasing == 0  # type: ignore[union-attr]
        with memoryd.scope(user="bob", session="s1"):
            assert [hit.text for hit in await rt.recall("zqbobsaid")] == ["zqbobsaid"]
            assert (await rt.verify()).ok


async def test_the_edits_of_a_forgotten_turn_go_with_it(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn("zqfirst", "ok")
            for text in ("zqsecond", "zqthird"):
                with memoryd.scope(session="another"):
                    await rt.edit(turn.event_id, user=text)
            await forget(rt, id=turn.event_id)
            assert await rt.find(turn.event_id) is None
    assert not any(grep(tmp_path, ["zqfirst", "zqsecond", "zqthird"]).values())


async def test_a_forgotten_key_has_no_history_and_can_begin_anew(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            for value in ("zqone", "zqtwo"):
                await rt.store("k", value)
            await rt.delete("k")
            assert len(await rt.history("k")) == 2
            await forget(rt, key="k")
            assert await rt.history("k") == []
            assert await rt.retrieve("k") is None
            await rt.store("k", "new")
            assert [version.value for version in await rt.history("k")] == ["new"]
    assert not any(grep(tmp_path, ["zqone", "zqtwo"]).values())


async def test_many_rows_of_any_size_leave_nothing_in_the_slack_of_a_page(tmp_path: Path) -> None:
    random = Random(7)
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            turns = [rt.sync_turn(f"zqrow{n}end " * random.choice((1, 3, 40, 500)), "noted") for n in range(300)]
            assert await rt.drain()
            gone = random.sample(range(300), 100)
            for n in gone[:20]:
                await forget(rt, id=turns[n].event_id)
            for n in gone[20:]:
                await rt.edit(turns[n].event_id, user="replaced")
            with memoryd.scope(session="s2"):
                rt.sync_turn("kept", "kept")
    words = [f"zqrow{n}end" for n in gone[:20]]
    assert not any(grep(tmp_path, words).values())


# -- the archive ---------------------------------------------------------------------------------------------------------------


async def test_the_archive_shows_the_gap_and_keeps_it(tmp_path: Path) -> None:
    transcript = rows("first", "one", "zqsecret", "zqreply", "third", "three")
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("first", "one")
            secret = rt.sync_turn("zqsecret", "zqreply")
            rt.sync_turn("third", "three")
            before = await rt.checkpoint(transcript)
            assert (await forget(rt, id=secret.event_id)).erased == 3  # the event and two rows
            restored = await rt.restore(before.id)
            assert [row is None for row in restored.rows] == [False, False, True, True, False, False]
            checked = await rt.verify()
            assert (checked.ok, checked.erased) == (True, 2)
            again = await rt.checkpoint(transcript)
            assert (again.verdict, again.id, again.erased, again.new_rows) == ("archived", before.id, 2, 0)
            said_again = await rt.checkpoint([*transcript, *rows("zqsecret", "zqreply")])
            assert said_again.new_rows == 2
            assert (await rt.restore(said_again.id)).rows[-1] is not None
            assert not await rt.recall("zqsecret")
            rt.sync_turn("zqsecret", "zqreply")  # said again: a new turn
            assert [hit.text for hit in await rt.recall("zqsecret")] == ["zqsecret"]


@pytest.mark.parametrize("wrap", ["{said}\n\n{block}", "{block}\n\n{said}", "{said}\n\n<memory-context>\n[System note]\n{block}\n</memory-context>"])
async def test_a_row_that_a_host_put_recalled_text_into_is_the_turn_all_the_same(tmp_path: Path, wrap: str) -> None:
    async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("the harbour is old", "so it is")
            await rt.drain()
            block = (await rt.prefetch("harbour")).text
            assert "harbour is old" in block
            said = wrap.format(said="zqsecret", block=block)
            turn = rt.sync_turn(said, "zqreply")
            first = await rt.checkpoint([*rows("the harbour is old", "so it is"), {"role": "user", "content": said}, *rows("", "zqreply")[1:]])
            parts = [{"type": "text", "text": "zqsecret"}, {"type": "text", "text": block}]
            again = await rt.checkpoint([*rows("the harbour is old", "so it is"), {"role": "user", "content": parts}, *rows("", "zqreply")[1:]])
            assert first.id == again.id
            await forget(rt, id=turn.event_id)
            assert (await rt.restore(first.id)).rows[2:] == (None, None)
            assert (await rt.verify()).ok
    assert not any(grep(tmp_path, ["zqsecret", "zqreply"]).values())


async def test_a_session_that_is_archived_again_stays_erased(tmp_path: Path) -> None:
    transcript = [{"role": "system", "content": "zqsystem"}, *rows("zqsaid", "zqanswer")]
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            before = await rt.checkpoint(transcript, source=b"zqsource line\n")
            await forget(rt, session="s1")
            assert (await rt.restore(before.id, full=True)).rows == (None, None, None)
            again = await rt.checkpoint(transcript, source=b"zqsource line\n")
            assert (again.verdict, again.id, again.erased) == ("archived", before.id, 3)
            assert (await rt.verify()).ok
    assert not any(grep(tmp_path, ["zqsystem", "zqsaid", "zqanswer", "zqsource"]).values())


async def test_words_quoted_elsewhere_are_reported_and_stay(tmp_path: Path) -> None:
    secret = "the zqsecret number is seven"
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s2"):
            rt.sync_turn(f"as you said: {secret}", "ok")
            await rt.checkpoint(rows(secret, "noted"))
        with memoryd.scope(user="bob", session="s2"):
            rt.sync_turn(secret, "not ada's business")
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn(secret, "noted")
            await rt.checkpoint(rows(secret, "noted"))
            done = await forget(rt, id=turn.event_id)
            assert done.quoted == 3  # a turn of the log, two rows of another session's checkpoint
            assert [hit.session for hit in await rt.recall("zqsecret")] == ["s2"]
    assert grep(tmp_path, ["zqsecret"])["zqsecret"]


async def test_a_backup_that_is_not_reached_is_named(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        backup = open_profile(tmp_path, "default").directory / "log.db.v0.backup"
        backup.write_bytes(b"zqold")
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn("zqnew", "ok")
            assert (await forget(rt, key="never stored")).warnings == ()
            done = await forget(rt, id=turn.event_id)
            assert any(str(backup) in warning for warning in done.warnings)


# -- what is not in the log yet, or again --------------------------------------------------------------------------------------


async def test_what_is_still_held_is_forgotten_too(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("before", "ok")
            other = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
            with other.transaction("IMMEDIATE"):
                assert rt.sync_turn("zqheld", "ok").state == "held"
                await trio.sleep(0.3)  # so that the next try comes after the forget
            other.close()
            await forget(rt, session="s1")
            assert await rt.drain()
            assert not await rt.recall("zqheld")
    assert not any(grep(tmp_path, ["zqheld"]).values())


async def test_what_another_run_spooled_is_forgotten_too(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("before", "ok")
            await trio.sleep(0.1)  # its own look at the spool is over
            other = Journal(open_profile(tmp_path, "default"), Limits())
            locker = connect(other.path, Options())
            with locker.transaction("IMMEDIATE"):
                event = Turn(b"x" * 16, memoryd.Scope(user="ada", session="s1"), 1, "zqspooled", "ok")
                assert other.append(event).state == "held"
                other.close()
            locker.close()
            await forget(rt, everything=True)
            assert await rt.drain()
    assert not any(grep(tmp_path, ["zqspooled"]).values())


async def test_what_was_prefetched_is_dropped(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn("zqgone", "ok")
            await rt.drain()
            rt.queue_prefetch("zqgone")
            await trio.testing.wait_all_tasks_blocked()
            await forget(rt, id=turn.event_id)
            assert "zqgone" not in (await rt.prefetch("zqgone")).text


async def test_a_locked_memory_shows_nothing_that_was_taken_back(tmp_path: Path) -> None:
    """The log has it already; what the projection still holds is no answer."""
    config = {"deadlines": {"drain": 0.3, "store": 0.1, "recall": 1, "retrieve": 0.5}}
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for word in ("gone", "edited"):
                turn = rt.sync_turn(f"zebra {word}", "ok")
            await rt.store("k", "zebra value")
            with memoryd.scope(session="s2"):
                rt.sync_turn("zebra kept", "ok")
            await rt.drain(10)
            other = connect(open_profile(tmp_path, "default").directory / "memory.db", Options())
            with other.transaction("IMMEDIATE"):
                await rt.edit(turn.event_id, user="zebra new")
                assert sorted(hit.text for hit in await rt.recall("zebra")) == ["zebra gone", "zebra kept", "zebra new", "zebra value"]
                await rt.delete("k")
                with pytest.raises(DeadlineExceeded):
                    await rt.retrieve("k")
                assert (await rt.forget(session="s1")).pending == 1
                assert [hit.text for hit in await rt.recall("zebra")] == ["zebra kept"]
            other.close()
            assert await rt.drain(10)
            assert [hit.text for hit in await rt.recall("zebra")] == ["zebra kept"]
            assert await rt.retrieve("k") is None


async def test_a_projection_made_anew_does_not_bring_it_back(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            turn = rt.sync_turn("zqgone", "ok")
            rt.sync_turn("zqkept", "ok")
            await rt.store("k", "zqgone too")
            await forget(rt, id=turn.event_id)
            await forget(rt, key="k")
    for path in open_profile(tmp_path, "default").directory.glob("memory.db*"):
        path.unlink()
    async with memoryd.open_runtime(tmp_path) as rt:
        assert await rt.catch_up(30) == 0
        with memoryd.scope(user="ada"):
            assert [hit.text for hit in await rt.recall("zqgone zqkept")] == ["zqkept"]
            assert await rt.history("k") == []
    found = grep(tmp_path, ["zqgone", "zqkept"])
    assert not found["zqgone"]
    assert found["zqkept"]


async def test_a_second_process_that_projects_meanwhile_brings_nothing_back(tmp_path: Path) -> None:
    words = [f"zqturn{n}end" for n in range(30)]
    with CrashChild([CHILD, tmp_path, "project"]) as child:
        child.wait_for(1)
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="s1"):
                for n, word in enumerate(words):
                    turn = rt.sync_turn(word, "ok")
                    if n % 2:
                        await rt.drain()
                    with trio.fail_after(60):
                        while (await rt.forget(turn.event_id)).pending:
                            await trio.sleep(0.01)
            assert not any(grep(tmp_path, words).values()), "while both are open"
        child.kill()
    assert not any(grep(tmp_path, words).values())


# -- kill -9 -------------------------------------------------------------------------------------------------------------------


async def kill_while_forgetting(home: Path, seed: int) -> int:
    """What was reported as erased is in no file, at once; what was begun is finished by the next open."""
    random = Random(seed)
    with CrashChild([CHILD, home, f"n{seed}"]) as child:
        told = child.kill_after(acks=random.randint(1, 12), within=0.05, random=random)[1:]
    assert not any(grep(home, told).values())
    async with memoryd.open_runtime(home) as rt:
        with trio.fail_after(60):
            while (status := await rt.status()).log is None or status.log.erasing:
                await trio.sleep(0.01)
        assert await rt.catch_up(30) == 0
        with memoryd.scope(user="ada", session=f"n{seed}"):
            left = {hit.text.split()[0] for hit in await rt.recall("planted", 1000)}
            assert (await rt.verify()).ok
    words = [f"zqn{seed}x{n}end" for n in range(40)]
    gone = [word for word in words if word not in left]
    assert len(gone) >= len(told)
    assert not any(grep(home, gone).values())
    return len(told)


async def test_a_forget_that_is_killed_is_finished_by_the_next_open(tmp_path: Path) -> None:
    assert sum([await kill_while_forgetting(tmp_path, seed) for seed in range(6)])


@pytest.mark.soak
async def test_many_forgets_that_are_killed(tmp_path: Path) -> None:
    for seed in range(200):
        await kill_while_forgetting(tmp_path / str(seed // 10), seed)


async def test_a_forget_clears_the_log_though_an_earlier_one_still_waits(tmp_path: Path) -> None:
    config = {"deadlines": {"drain": 0.2, "close": 0.2}, "logging": {"level": "off"}}
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        for session in ("s1", "s2", "s3"):
            with memoryd.scope(user="ada", session=session):
                rt.sync_turn("zqsecret", "ok")
        await rt.catch_up(20)
        directory = open_profile(tmp_path, "default").directory
        with closing(connect(directory / "memory.db", Options())) as lock, memoryd.scope(user="ada"):
            lock.run("BEGIN IMMEDIATE")
            for session in ("s1", "s2", "s3"):
                assert (await rt.forget(session=session)).pending
            with closing(connect(directory / "log.db", Options(readonly=True))) as log:
                assert log.all("SELECT payload FROM event WHERE seq <= 3") == [(None,)] * 3
