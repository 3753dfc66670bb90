"""The gate of a host with checkpoint contract v2: refused with the reason, nothing lost, and through by itself once it can be."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.hermes.hosts.world import FILLER, World

pytestmark = pytest.mark.hosts

MakeWorld = Callable[..., World]
SMALL = {"compression": "threshold_tokens: 24000, tail_mode: full", "context": 64_000}
FULL = 16  # turns after which a compaction was asked for, and could shorten the transcript


def long_turns(first: int, last: int) -> list[tuple[str, Any]]:
    return [("turn", said(number)) for number in range(first, last)]


def said(number: int) -> str:
    """Some 6,000 characters: 24,000 tokens have room for fourteen of them."""
    return f"turn {number} is about subject{number}. {FILLER}"


@pytest.fixture
def gated(make_world: MakeWorld) -> World:
    return armed(make_world("host22", **SMALL))


def armed(world: World) -> World:
    assert "checkpoint_required: true" not in (world.home / "config.yaml").read_text()
    world.memoryd("install", "hermes", "--gate")
    world.settings(auto_recall="false")  # so that turns are as long as they are
    assert "checkpoint_required: true" in (world.home / "config.yaml").read_text()
    return world


def refused(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in told if "CompressionCheckpointUnavailable" in line.get("classes", ())]


def subjects(world: World, session: str = "s1") -> set[int]:
    """The turns that some checkpoint of the session has."""
    found = set()
    for info in world.archived(session):
        for row in world.restored(info["id"]):
            if row["role"] == "user":
                found.add(int(row["content"].split()[1]))
    return found


def test_automatic_compaction_is_archived_first(gated: World) -> None:
    told = gated.drive(("agent", "s1"), *long_turns(0, FULL), ("history", None), ("end", None))
    assert not [line for line in told if "error" in line]
    summary = next(asked for asked in gated.model.asked if asked["kind"] == "summary")
    before = sum(asked["kind"] == "chat" for asked in gated.model.asked[: gated.model.asked.index(summary)])
    assert set(range(before)) <= subjects(gated)
    assert any(info["id"][:12] in summary["text"] for info in gated.archived("s1"))
    assert [int(user.split()[1]) for _, user in gated.turns()] == list(range(FULL))
    assert "compaction" in [mark["mark"] for mark in gated.events("mark")]
    assert len(told[-2]["result"]) < 2 * FULL  # it was compacted


def test_a_broken_archive_refuses_until_it_is_healed(gated: World) -> None:
    steps = [("agent", "s1"), *long_turns(0, 3), ("break", None), *long_turns(3, FULL), ("history", None), ("stored", "s1")]
    told = gated.drive(*steps, ("heal", None), *long_turns(FULL, FULL + 3), ("flush", None), ("history", None), ("end", None))
    blocked = refused(told)
    assert blocked, told
    for line in blocked:
        assert "BLOCKED_MISSING_PREREQUISITE" in line["error"]
        assert "MEMORYD_GATE" in line["cause"] and f"memoryd --home {gated.store} gate release s1" in line["cause"]
    numbers = [line["step"] for line in blocked]
    broken, healed = 4, steps.index(("stored", "s1")) + 1
    assert all(broken < number < healed for number in numbers)
    first = numbers[0]
    whole = told[steps.index(("history", None))]["result"]
    passed = [step[1] for step in steps[:first] if step[0] == "turn"]
    assert [content for role, content in whole if role == "user"] == passed  # no row was cut
    assert [content for role, content in told[steps.index(("stored", "s1"))]["result"] if role == "user"][: len(passed)] == passed
    after = [line for line in told if line["name"] == "turn" and line["step"] > healed]
    assert after and not [line for line in after if "error" in line]
    assert set(range(first - 2)) <= subjects(gated)


def test_a_full_disk_refuses_and_then_goes_through_by_itself(gated: World) -> None:
    store = gated.store
    tmpfs = f"mount -t tmpfs -o size=24m tmpfs {store} && exec \"$@\""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", tmpfs, "sh"]
    shutil.rmtree(store)
    store.mkdir()
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no small file system can be mounted here")
    list_all = ["--home", str(store), "--session", "s1", "checkpoint", "list"]
    steps = [
        ("agent", "s1"), *long_turns(0, 3), ("flush", None), ("fill", "memoryd-store/filler"), *long_turns(3, FULL), ("history", None),
        ("remove", "memoryd-store/filler"), *long_turns(FULL, FULL + 3), ("flush", None), ("call", list_all), ("copy", "memoryd-store"), ("end", None),
    ]  # fmt: skip
    told = gated.drive(*steps, before=command)
    blocked = refused(told)
    assert blocked, told
    assert all("disk" in line["cause"] or "full" in line["cause"] for line in blocked), blocked[0]
    freed = steps.index(("remove", "memoryd-store/filler"))
    assert all(line["step"] < freed for line in blocked)
    whole = told[steps.index(("history", None))]["result"]
    first = blocked[0]["step"]
    assert [content for role, content in whole if role == "user"] == [step[1] for step in steps[:first] if step[0] == "turn"]
    assert not [line for line in told if line["step"] > freed and "error" in line]
    # the small file system went with the process: the copy that it made is looked at
    shutil.rmtree(store)
    (gated.home / "copy").rename(store)
    assert subjects(gated) >= set(range(len(whole) // 2))
    kept = {int(user.split()[1]) for _, user in gated.turns()}
    assert kept >= {0, 1, 2, FULL, FULL + 1, FULL + 2}


def test_a_way_out_of_a_refusal(gated: World) -> None:
    broken = [("agent", "s1"), *long_turns(0, 3), ("break", None)]
    told = gated.drive(*broken, ("env", {"MEMORYD_GATE": "off"}), *long_turns(3, FULL), ("end", None))
    assert not [line for line in told if "error" in line]
    assert any(asked["kind"] == "summary" for asked in gated.model.asked)


def test_a_released_session_goes_on(gated: World) -> None:
    gated.drive(("agent", "s1"), *long_turns(0, 2), ("end", None))
    gated.hermes("memoryd", "gate", "--release", "s2")
    told = gated.drive(("agent", "s2"), *long_turns(0, 2), ("break", None), *long_turns(2, FULL), ("end", None))
    assert not [line for line in told if "error" in line]
    assert any(asked["kind"] == "summary" for asked in gated.model.asked)


def test_without_the_gate_a_broken_archive_stops_nothing(make_world: MakeWorld) -> None:
    world = make_world("host22", **SMALL)
    world.settings(auto_recall="false")
    told = world.drive(("agent", "s1"), *long_turns(0, 3), ("break", None), *long_turns(3, FULL), ("end", None))
    assert not [line for line in told if "error" in line]
    assert any(asked["kind"] == "summary" for asked in world.model.asked)
    assert len(world.turns()) == FULL


def test_a_forced_compaction_is_refused_too(make_world: MakeWorld) -> None:
    gated = armed(make_world("host22"))
    turns = [("turn", f"turn {number} is short. {FILLER[:3000]}") for number in range(9)]
    steps = [("agent", "s1"), *turns, ("break", None), ("compress", None), ("history", None), ("heal", None), ("compress", None)]
    told = gated.drive(*steps, ("history", None), ("end", None))
    names = [name for name, _ in steps]
    assert "CompressionCheckpointUnavailable" in told[names.index("compress")]["classes"]
    assert len(told[names.index("history")]["result"]) == 18
    assert told[len(steps) - 1]["result"]["after"] < 18
    assert subjects(gated) == set(range(9))


def test_a_short_history_is_archived_and_nothing_follows(gated: World) -> None:
    """A host asks for a checkpoint and then does not compact: the same again adds nothing."""
    told = gated.drive(("agent", "s1"), ("turn", "turn 0 is short"), ("compress", None), ("compress", None), ("end", None))
    assert not [line for line in told if "error" in line]
    assert len(gated.archived("s1")) == 1


def test_another_provider_with_the_gate_armed_is_found_by_doctor(gated: World) -> None:
    config = gated.home / "config.yaml"
    config.write_text(config.read_text().replace("provider: memoryd", "provider: ''"))
    told = gated.drive(("agent", "s1"), *long_turns(0, FULL), ("end", None))
    assert refused(told)
    said_by = gated.run(gated.python, "-c", "import memoryd_hermes, memoryd.hosts as h; print(*memoryd_hermes.host.checks(h.make_place()))")
    assert "memoryd is not active" in said_by and "memoryd install hermes" in said_by
