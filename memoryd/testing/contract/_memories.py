"""Checks of keyed memories: fields, order, queries, deletion, users, hostile names."""

from __future__ import annotations

from datetime import timedelta

from memoryd.core import Memory
from memoryd.testing.contract._bench import Bench
from memoryd.testing.contract._report import check

HOSTILE = ("*", "in", "a.b", "a-b", "A-B", "../x", "x" * 300, "👩‍👩‍👧", "שלום", "中文", "a\0b", "\ud800", "%", "_", "' OR 1=1 --", " ")


async def _retrieved(bench: Bench, key: str, value: str | None, of: str = "ada") -> Memory | None:
    """The memory of ``key``, once its value is ``value`` (None: once it is gone)."""

    def wanted(memory: Memory | None) -> bool:
        return memory is None if value is None else memory is not None and memory.value == value

    return await bench.eventually(lambda: bench.backend.retrieve(of, key), wanted)


@check
async def a_stored_memory_has_its_fields(bench: Bench) -> None:
    """key, value, user, type, times (equal at first) and metadata come back as they were given."""
    async with bench.opened() as backend:
        await bench.tell(bench.write("city", "Oslo", type="fact", source="chat", n=1))
        memory = await _retrieved(bench, "city", "Oslo") if bench.can("memories") else await backend.retrieve("ada", "city")
        if not bench.can("memories"):
            assert memory is None
            return
        assert memory is not None
        assert (memory.key, memory.value, memory.user_id, memory.type) == ("city", "Oslo", "ada", "fact")
        assert memory.created_at == memory.updated_at
        assert dict(memory.metadata) == {"source": "chat", "n": 1}


@check
async def an_upsert_keeps_the_first_time_and_replaces_the_rest(bench: Bench) -> None:
    async with bench.opened() as backend:
        await bench.tell(bench.write("city", "Oslo", a=1))
        await bench.tell(bench.write("city", "Turin", b=2))
        if not bench.can("memories"):
            assert await backend.retrieve("ada", "city") is None
            return
        memory = await _retrieved(bench, "city", "Turin")
        assert memory is not None
        assert memory.updated_at - memory.created_at == timedelta(minutes=1)
        assert dict(memory.metadata) == {"b": 2}


@check
async def an_older_write_that_comes_late_does_not_overwrite(bench: Bench) -> None:
    """The place in the log decides, not the time of arrival."""
    async with bench.opened() as backend:
        late = bench.entry(bench.write("city", "Oslo"))
        newer = bench.entry(bench.write("city", "Turin"))
        if await backend.position() is not None:  # it asks for what is missing instead
            outcomes = await bench.give(newer)
            assert [outcome.kind for outcome in outcomes] == ["gap"]
            await bench.give(late, newer)
        else:
            await bench.give(newer)
        await bench.give(late)
        memory = await _retrieved(bench, "city", "Turin") if bench.can("memories") else None
        assert (memory.value if memory else None) == ("Turin" if bench.can("memories") else None)


@check
async def a_key_that_was_never_stored_is_none(bench: Bench) -> None:
    async with bench.opened() as backend:
        assert await backend.retrieve("ada", "nothing") is None
        assert await backend.list_keys("ada") == []


@check
async def keys_are_listed_newest_first(bench: Bench) -> None:
    async with bench.opened() as backend:
        await bench.tell(bench.write("a", "1"), bench.write("b", "2"), bench.write("c", "3"))
        await bench.tell(bench.write("a", "4"))
        expected = ["a", "c", "b"] if bench.can("list") else []
        assert await bench.eventually(lambda: backend.list_keys("ada"), lambda keys: keys == expected) == expected


@check
async def a_query_is_a_substring_of_key_or_value_in_any_case(bench: Bench) -> None:
    """``%``, ``_`` and ``*`` are themselves; newest first; at most ``limit``; an empty text finds nothing."""
    async with bench.opened() as backend:
        await bench.tell(
            bench.write("Favourite-Colour", "deep BLUE"), bench.write("rate", "100% sure"), bench.write("snake_case", "a*b")
        )
        cases = {"blue": ["Favourite-Colour"], "colour": ["Favourite-Colour"], "%": ["rate"], "_": ["snake_case"], "*": ["snake_case"]}
        for text, keys in {**cases, "e": ["snake_case", "rate", "Favourite-Colour"], "nowhere": [], "": []}.items():
            wanted = keys if bench.can("query") else []
            seen = await bench.eventually(lambda text=text: _keys(bench, text), lambda found, wanted=wanted: found == wanted)  # type: ignore[misc]
            assert seen == wanted, f"query {text!r}: {seen}"
        assert len(await backend.query("ada", "e", 2)) == (2 if bench.can("query") else 0)
        assert await backend.query("ada", "e", 0) == []


async def _keys(bench: Bench, text: str) -> list[str]:
    return [memory.key for memory in await bench.backend.query("ada", text)]


@check
async def a_query_gives_ten_by_default(bench: Bench) -> None:
    async with bench.opened():
        await bench.tell(*[bench.write(f"key{n}", "same") for n in range(12)])
        wanted = [f"key{n}" for n in range(11, 1, -1)] if bench.can("query") else []
        assert await bench.eventually(lambda: _keys(bench, "same"), lambda keys: keys == wanted) == wanted


@check
async def a_deleted_key_is_gone_and_stays_gone(bench: Bench) -> None:
    """Also when everything is delivered again; deleting a missing key is fine; storing again works."""
    async with bench.opened() as backend:
        told = await bench.tell(bench.write("city", "Oslo"), bench.deletion("city"), bench.deletion("never"))
        await bench.give(*told)
        if not bench.can("memories"):
            assert await backend.retrieve("ada", "city") is None
            return
        expected = None if bench.can("delete") else "Oslo"
        memory = await _retrieved(bench, "city", expected)
        assert (memory.value if memory else None) == expected
        await bench.tell(bench.write("city", "Turin"))
        again = await _retrieved(bench, "city", "Turin")
        assert again is not None
        assert not bench.can("delete") or again.created_at == again.updated_at


@check
async def users_have_memories_of_their_own(bench: Bench) -> None:
    async with bench.opened() as backend:
        await bench.tell(bench.write("city", "Oslo", of="ada"), bench.write("city", "Turin", of="bob"))
        values = []
        for user, value in (("ada", "Oslo"), ("bob", "Turin")):
            memory = await _retrieved(bench, "city", value, user) if bench.can("memories") else None
            values.append(memory.value if memory else None)
        assert values == (["Oslo", "Turin"] if bench.can("memories") else [None, None])
        assert await backend.list_keys("eve") == []
        assert await backend.query("eve", "o") == []


@check
async def hostile_keys_values_and_users_stay_apart(bench: Bench) -> None:
    """Every name is itself and nobody else: wildcards, dots and dashes, paths, 300 characters, NUL, lone surrogates."""
    async with bench.opened() as backend:
        await bench.tell(*[bench.write(name, f"value of {name}") for name in HOSTILE])
        await bench.tell(*[bench.write("key", f"of {name}", of=f"user {name}") for name in HOSTILE])
        for name in HOSTILE:
            for user, key, value in (("ada", name, f"value of {name}"), (f"user {name}", "key", f"of {name}")):
                memory = await _retrieved(bench, key, value, user) if bench.can("memories") else await backend.retrieve(user, key)
                assert (memory.value if memory else None) == (value if bench.can("memories") else None), f"name {name!r}"


@check
async def values_of_any_text_come_back_as_they_are(bench: Bench) -> None:
    """Empty, NUL, lone surrogates, emoji, right-to-left, a megabyte."""
    texts = ["", "a\0b", "\ud800 lone", "👩‍👩‍👧 é e\u0301", "שלום עולם", "line\r\nline\n", "x" * 1_000_000]
    async with bench.opened() as backend:
        for number, text in enumerate(texts):
            await bench.tell(bench.write(f"key{number}", text))
        for number, text in enumerate(texts):
            can = bench.can("memories")
            memory = await _retrieved(bench, f"key{number}", text) if can else await backend.retrieve("ada", f"key{number}")
            assert (memory.value if memory else None) == (text if can else None), f"value {number}"
