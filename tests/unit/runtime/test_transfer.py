"""Export and import: out of one log and into another, exactly, once, in order; and whose words go where."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.core import Config, MemoryWrite, Scope, new_event_id
from memoryd.errors import ConfigError, InvalidInput, StoreFull
from memoryd.journal import Journal, Limits
from memoryd.runtime import Exported, Imported, export_events, import_events
from memoryd.store import open_profile

CONFIG = Config()


def exported(home: Path, user: str | None = "ada") -> bytes:
    stream = io.BytesIO()
    export_events(home, "default", CONFIG, user, stream)
    return stream.getvalue()


def imported(home: Path, data: bytes, **options: Any) -> Imported:
    return import_events(home, "default", CONFIG, io.BytesIO(data), **options)


def rows(data: bytes) -> list[dict[str, Any]]:
    """The events of an export."""
    return [json.loads(line) for line in data.splitlines()][1:-1]


def built(lines: Sequence[bytes]) -> bytes:
    """An export of those event lines."""
    head = {"format": "memoryd-export", "version": 1, "user": "ada"}
    return b"\n".join([json.dumps(head).encode(), *lines, json.dumps({"end": len(lines)}).encode(), b""])


async def lived(home: Path) -> None:
    """A home with every kind of event: two users, an edit, a deletion, a forgotten turn, odd characters."""
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session="s1", agent="a\udc00gent"):
            first = rt.sync_turn("I live in Oslo", "Noted.", turn_id="t1", created_at=1_700_000_000)
            secret = rt.sync_turn("my code is 4711", "I keep it.", turn_id="t2")
            rt.sync_turn("a lone \ud800\udc00 pair, NUL \0 and \u2028", "ok", messages=[{"role": "user", "id": "m1", "content": "x"}])
            await rt.store("city", "Oslo", {"type": "place", "sure": 0.1})
            await rt.store("city", "Bergen")
            await rt.store("colour", "blue")
            await rt.delete("colour")
            rt.mark_session("end", {"why": "done"})
            await rt.edit(first.event_id, user="I live in Bergen")
            await rt.forget(secret.event_id)
        with memoryd.scope(user="bob", session="s1"):
            rt.sync_turn("bob was here", "ok")


async def test_it_comes_back_exactly(tmp_path: Path) -> None:
    await lived(tmp_path / "a")
    for user in ("ada", None):
        data = exported(tmp_path / "a", user)
        home = tmp_path / f"to {user}"
        count = len(rows(data))
        assert imported(home, data, all_users=user is None) == Imported(count, count)
        assert exported(home, user) == data
        assert imported(home, data, all_users=user is None) == Imported(count, 0), "again adds nothing"
        assert imported(tmp_path / "a", data, all_users=user is None) == Imported(count, 0), "nor where it comes from"
        assert exported(home, user) == data


async def test_a_reader_finds_there_what_was_here(tmp_path: Path) -> None:
    await lived(tmp_path / "a")
    imported(tmp_path / "b", exported(tmp_path / "a"))
    seen = []
    for home in ("a", "b"):
        async with memoryd.open_runtime(tmp_path / home) as rt:
            with memoryd.scope(user="ada", session="s1"):
                await rt.catch_up(10)
                city = await rt.history("city")
                again = rt.sync_turn("I live in Oslo", "Noted.", turn_id="t1")
                best = (await rt.recall("where do I live"))[0]
                found = best.id, best.text, best.at, list(await rt.recall("4711"))
                seen.append((await rt.list_memories(), city, again.event_id, again.reason, found))
    assert seen[0] == seen[1]
    assert seen[0][3] == "duplicate"
    assert seen[0][-1][1:] == ("I live in Bergen", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), [])


async def test_an_export_is_about_one_user(tmp_path: Path) -> None:
    await lived(tmp_path / "a")
    data = exported(tmp_path / "a")
    assert b"bob" not in data
    assert b"4711" not in data
    assert [row["kind"] for row in rows(data)] == [
        "turn", "erased", "turn", "memory", "memory", "memory", "deletion", "mark", "edit", "forget",
    ]  # fmt: skip
    assert [row["user"] for row in rows(exported(tmp_path / "a", "bob"))] == ["bob was here"]
    with pytest.raises(InvalidInput, match="about user 'ada', not 'bob'"):
        imported(tmp_path / "b", data, user="bob")
    with pytest.raises(InvalidInput, match="--all-users"):
        imported(tmp_path / "b", exported(tmp_path / "a", None))
    assert exported(tmp_path / "b", None).count(b"\n") == 2, "nothing was taken in"


async def test_a_forget_erases_where_the_words_came_in_earlier(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path / "a") as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("my code is 4711", "I keep it.")
            rt.sync_turn("hello", "hi")
    before = exported(tmp_path / "a")
    async with memoryd.open_runtime(tmp_path / "a") as rt:
        with memoryd.scope(user="ada", session="s1"):
            await rt.forget((await rt.recall("4711"))[0].id)
    after = exported(tmp_path / "a")
    imported(tmp_path / "b", before)
    async with memoryd.open_runtime(tmp_path / "b") as rt:
        with memoryd.scope(user="ada", session="s1"):
            messages = [{"role": "user", "content": "my code is 4711"}, {"role": "assistant", "content": "I keep it."}]
            await rt.checkpoint(messages)
    assert imported(tmp_path / "b", after) == Imported(3, 1, forgets=1)
    assert exported(tmp_path / "b") == after, "erased at once for every reader"
    async with memoryd.open_runtime(tmp_path / "b") as rt:
        await rt.catch_up(10)
        await rt.parts[1].resume(10)
    assert all(b"4711" not in path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())
    assert imported(tmp_path / "b", before) == Imported(2, 0), "an old export does not bring it back"
    assert exported(tmp_path / "b") == after


async def test_a_forget_does_not_reach_another_users_events(tmp_path: Path) -> None:
    await lived(tmp_path / "a")
    (theirs,) = rows(exported(tmp_path / "a", "bob"))
    scope, at = {"user": "ada"}, "2026-01-01T00:00:00+00:00"
    forged = {"kind": "forget", "id": "ab" * 16, "at": at, "scope": scope, "targets": [theirs["id"]], "sessions": []}
    imported(tmp_path / "a", built([json.dumps(forged).encode()]))
    assert rows(exported(tmp_path / "a", "bob")) == [theirs]


def test_wrong_lines_are_named_and_nothing_is_kept(tmp_path: Path) -> None:
    good = [json.dumps(memory(number)).encode() for number in range(6)]
    bad = [good[0], b"not json", good[1], b'{"kind": "poem"}', b"\xff", good[2].replace(b'"ada"', b'"bob"'), good[3]]
    with pytest.raises(InvalidInput) as raised:
        imported(tmp_path, built(bad))
    assert str(raised.value) == "line 3: is not JSON; also wrong: 5, 6, 7; nothing was imported"
    whole = built(good)
    for cut in (whole[:-1].rpartition(b"\n")[0] + b"\n", whole[:200], whole + good[0] + b"\n", b"", b"{}\n", whole.replace(b"1,", b"2,", 1)):
        with pytest.raises(InvalidInput, match="nothing was imported"):
            imported(tmp_path, cut)
    assert rows(exported(tmp_path)) == []
    assert imported(tmp_path, whole) == Imported(6, 6)


def memory(number: int) -> dict[str, Any]:
    scope, at = {"user": "ada"}, "2026-01-01T00:00:00+00:00"
    return {"kind": "memory", "id": f"{number:032x}", "at": at, "scope": scope, "key": f"k{number}", "value": "v", "type": "t", "metadata": {}}


def test_what_is_new_comes_after_what_is_here_in_order(tmp_path: Path) -> None:
    lines = [json.dumps(memory(number)).encode() for number in range(1500)]
    imported(tmp_path, built(lines[::3]))
    told: list[tuple[int, int]] = []
    done = imported(tmp_path, built(lines), on_progress=lambda done, total: told.append((done, total)))
    assert done == Imported(1500, 1000)
    keys = [row["key"] for row in rows(exported(tmp_path))]
    assert keys == [f"k{n}" for n in range(0, 1500, 3)] + [f"k{n}" for n in range(1500) if n % 3]
    assert told == sorted(told)
    assert told[-1][0] <= told[-1][1]


def test_it_stops_where_the_log_may_not_grow(tmp_path: Path) -> None:
    data = built([json.dumps({**memory(n), "value": "x" * 1000}).encode() for n in range(2000)])
    with pytest.raises(StoreFull, match="quota"):
        import_events(tmp_path, "default", memoryd.Config(log=memoryd.core.LogConfig(max_bytes=500_000)), io.BytesIO(data))
    kept = len(rows(exported(tmp_path)))
    assert 0 < kept < 2000
    assert imported(tmp_path, data) == Imported(2000, 2000 - kept), "with more room the same import goes on"


def test_events_of_another_process_meanwhile_are_known(tmp_path: Path) -> None:
    """The ids are looked at inside each transaction."""
    store = open_profile(tmp_path, "default")
    first, second = Journal(store, Limits()), Journal(store, Limits())
    from memoryd.journal import Intake

    events = [MemoryWrite(new_event_id(), Scope(user="ada"), 0, f"k{n}", "v") for n in range(4)]
    one, other = Intake(first), Intake(second)
    assert one.add([(event, None) for event in events[:2]]) == 2
    assert other.add([(event, None) for event in events]) == 2
    assert one.add([(event, None) for event in events]) == 0
    for intake, journal in ((one, first), (other, second)):
        intake.close()
        journal.close()


async def test_the_file_is_private_and_known_to_a_forget(tmp_path: Path) -> None:
    await lived(tmp_path / "a")
    target = tmp_path / "out.jsonl"
    target.write_text("old", "utf-8")
    assert export_events(tmp_path / "a", "default", CONFIG, "ada", target) == Exported(10, "ada")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "out.jsonl"]
    async with memoryd.open_runtime(tmp_path / "a") as rt:
        with memoryd.scope(user="ada"):
            forgotten = await rt.forget(key="city")
            assert any(str(target) in warning for warning in forgotten.warnings)
            target.unlink()
            assert not (await rt.forget(key="colour")).warnings


def test_without_a_log_there_is_nothing_to_move(tmp_path: Path) -> None:
    off = Config(backend="null")
    with pytest.raises(ConfigError, match="no log"):
        export_events(tmp_path, "default", off, "ada", io.BytesIO())
    with pytest.raises(ConfigError, match="no log"):
        import_events(tmp_path, "default", off, io.BytesIO(built([])))
    assert not list(tmp_path.rglob("log.db"))
