"""Checks of manners: what a backend says of itself, its cursor, errors, cancellation, health."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import trio

from memoryd.core import Availability, BackendInfo, Cursor, Health, Outcome, Query
from memoryd.errors import BackendAmbiguous, BackendError, BackendPermanent, BackendTransient
from memoryd.testing.contract._bench import Bench
from memoryd.testing.contract._report import check

_NETWORK = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"})


class _Watch:
    """Audit events of network calls while it is on; a hook cannot be removed, so that there is one for all checks."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if self.on and event in _NETWORK:
            self.seen.append(event)


@cache
def _watch() -> _Watch:
    return _Watch()


@check
async def availability_asks_no_network(bench: Bench) -> None:
    """Configuration and installed packages only, again and again, before ``open``."""
    watch = _watch()
    watch.on = True
    try:
        answers = [bench.backend.is_available() for _ in range(3)]
    finally:
        watch.on = False
    assert all(isinstance(answer, Availability) for answer in answers)
    assert not watch.seen, f"network calls: {watch.seen}"


@check
async def it_says_what_it_is(bench: Bench) -> None:
    """Before ``open``, the same afterwards; it never names a secret."""
    info = bench.backend.info
    assert isinstance(info, BackendInfo)
    assert info.name == bench.subject.name
    assert info.label
    assert info.data_location
    async with bench.opened() as backend:
        assert backend.info.capabilities == info.capabilities
    for value in bench.subject.config.values():
        assert not (isinstance(value, str) and "key" in value.lower() and value in repr(info))


@check
async def health_is_a_real_answer(bench: Bench) -> None:
    async with bench.opened() as backend:
        health = await backend.health()
        assert isinstance(health, Health)
        assert health.ok, health.detail


@check
async def the_cursor_is_its_own_or_none(bench: Bench) -> None:
    """A backend that keeps a cursor moves it with what it applied, and asks for what is missing; others say None."""
    async with bench.opened() as backend:
        first = await backend.position()
        told = await bench.tell(bench.turn("zebra"), bench.write("k", "v"))
        position = await backend.position()
        if first is None:
            assert position is None
            return
        assert position == told[-1].cursor
        hole = bench.entry(bench.turn("too early"), seq=bench.seq + 5)
        assert [outcome.kind for outcome in await bench.give(hole)] == ["gap"]
        assert await backend.position() == position


@check
async def a_log_with_another_epoch_is_taken_by_id(bench: Bench) -> None:
    """After a restore the places are new and the events are not: nothing doubles."""
    async with bench.opened() as backend:
        told = await bench.tell(bench.turn("zebra one"), bench.turn("zebra two"))
        again = [type(entry)(Cursor("another epoch", entry.seq), entry.event) for entry in told]
        assert {outcome.kind for outcome in await bench.give(*again)} == {"ok"}
        if not bench.can("recall"):
            return

        async def look() -> list[str]:
            return sorted([hit.text for hit in await backend.recall(Query("ada", "zebra", 50)) if "zebra" in hit.text])

        wanted = ["zebra one", "zebra two"]
        assert await bench.eventually(look, lambda found: found == wanted) == wanted


ERRORS: dict[str, type[BackendError]] = {
    "transient": BackendTransient,
    "permanent": BackendPermanent,
    "ambiguous": BackendAmbiguous,
}


@check
async def errors_are_of_the_three_classes(bench: Bench) -> None:
    """Each class that the subject can be made to meet is answered as such: raised, or as the outcome; then all is well again."""
    async with bench.opened() as backend:
        for kind, fault in bench.subject.faults.items():
            entry = bench.entry(bench.turn(f"zebra during {kind}"))
            with fault(backend):
                try:
                    outcomes: list[Outcome] = await bench.give(entry)
                except ERRORS[kind]:
                    outcomes = [Outcome(kind)]  # type: ignore[arg-type]  # the keys of ERRORS are kinds
            assert [outcome.kind for outcome in outcomes] == [kind], f"{kind}: {outcomes}"
            assert [outcome.kind for outcome in await bench.give(entry)] == ["ok"], f"after {kind}"


CALLS: dict[str, Callable[[Bench], Awaitable[Any]]] = {
    "apply": lambda bench: bench.give(bench.entry(bench.turn("zebra again"), seq=bench.seq + 1)),
    "recall": lambda bench: bench.backend.recall(Query("ada", "zebra")),
    "retrieve": lambda bench: bench.backend.retrieve("ada", "k"),
    "query": lambda bench: bench.backend.query("ada", "v"),
    "list_keys": lambda bench: bench.backend.list_keys("ada"),
    "health": lambda bench: bench.backend.health(),
    "position": lambda bench: bench.backend.position(),
}


@check
async def a_cancelled_call_leaves_it_whole(bench: Bench) -> None:
    """Each call cancelled at its beginning and in its middle: no hang, and the next call works; a cancelled write was done or not."""
    async with bench.opened() as backend:
        await bench.tell(bench.turn("zebra"), bench.write("k", "v"))
        for name, call in CALLS.items():
            for delay in (0.0, 0.0005, 0.002):
                with trio.move_on_after(delay):
                    await call(bench)
            if name == "apply":
                position = await backend.position()
                outcomes = await bench.give(bench.entry(bench.turn("zebra again"), seq=bench.seq + 1))
                assert [outcome.kind for outcome in outcomes] == ["ok"], f"after a cancelled apply at {position}"
        memory = await bench.eventually(lambda: backend.retrieve("ada", "k"), lambda found: found is not None)
        assert (memory.value if memory else None) == ("v" if bench.can("memories") else None)


@check
async def closing_twice_is_fine(bench: Bench) -> None:
    async with bench.opened() as backend:
        await bench.tell(bench.turn("zebra"))
        await backend.aclose()
