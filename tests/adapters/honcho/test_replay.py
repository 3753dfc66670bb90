"""A whole memory moves to Honcho, by a process that is killed twice on its way: in the end there is what an export says."""

from __future__ import annotations

import io
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.core import Config
from memoryd.runtime import export_events
from memoryd.store import open_profile
from memoryd.testing import CrashChild
from memoryd.testing.honcho import HonchoServer
from tests.adapters.honcho.conftest import opened
from tests.adapters.honcho.test_delivery import read

REPLAY = ["-m", "memoryd", "replay", "--to", "honcho", "--json"]


async def lived(home: Path) -> None:
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ann"):
            for number in range(60):
                with memoryd.scope(session=f"s{number % 3}"):
                    rt.sync_turn(f"question {number}", f"answer {number}")
            with memoryd.scope(session="s0"):
                secret = rt.sync_turn("the plum is purple", "so it is")
            for city in ("Oslo", "Bergen"):
                await rt.store("city", city)
            await rt.store("colour", "blue")
            await rt.delete("colour")
            await rt.forget(secret.event_id)


def exported(home: Path) -> list[dict[str, Any]]:
    """The events of an export."""
    stream = io.BytesIO()
    export_events(home, "default", Config(), "ann", stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()][1:-1]


def wait_for(honcho: HonchoServer, messages: int) -> None:
    deadline = time.monotonic() + 60
    while len(honcho.messages()) < messages and time.monotonic() < deadline:
        time.sleep(0.002)
    assert len(honcho.messages()) >= messages


async def test_killed_twice_it_ends_with_what_an_export_says(private_home: Path, honcho: HonchoServer) -> None:
    await lived(private_home)
    source = exported(private_home)
    config = "[delivery]\nbatch_events = 10\n[backends.honcho]\nsettle = 0.05\n"
    (private_home / "memoryd.toml").write_text(config, "utf-8")
    for _ in range(2):
        with CrashChild(REPLAY, env={"HONCHO_URL": honcho.url}) as child:
            wait_for(honcho, len(honcho.messages()) + 25)
            child.kill()
    with CrashChild(REPLAY, env={"HONCHO_URL": honcho.url}) as child:
        (said,) = child.wait(60)
    done = json.loads(said)
    assert done["first"] > 1
    assert (done["last"], done["refused"]) == (len(source), 0)
    assert exported(private_home) == source

    sessions: defaultdict[str, list[str]] = defaultdict(list)
    for row in source:
        if row["kind"] == "turn":
            sessions[row["scope"]["session"]] += [row["user"], row["assistant"]]
    assert sorted(read(honcho).values()) == sorted(sessions.values())
    assert b"plum" not in honcho.everything_received()
    async with opened(honcho.url, key=open_profile(private_home, "default").key) as backend:
        assert await backend.list_keys("ann") == ["city"]
        city = await backend.retrieve("ann", "city")
        assert city is not None
        assert city.value == "Bergen"


async def primary(home: Path, backend: str | None) -> str:
    """Who is the primary of a runtime that says something; ``backend`` None is the default."""
    config: dict[str, Any] = {"logging": {"level": "off"}, **({} if backend is None else {"backend": backend})}
    async with memoryd.open_runtime(home, config=config) as rt:
        with memoryd.scope(user="ann", session="s"):
            rt.sync_turn("hello", "hi")
            await rt.drain(10)
            return next(one.name for one in (await rt.status()).backends if one.role == "primary")


async def test_auto_asks_the_real_one(private_home: Path, honcho: HonchoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await primary(private_home, "auto") == "local", "nothing is configured"
    monkeypatch.setenv("HONCHO_API_KEY", "a-key-of-somebody")
    assert await primary(private_home, "auto") == "local", "a key is no address"
    monkeypatch.setenv("HONCHO_URL", honcho.url)
    assert await primary(private_home, None) == "local", "a key and an address are no choice"
    assert honcho.everything_received() == b""
    assert await primary(private_home, "auto") == "honcho"
    assert len(honcho.messages()) == 8, "also what came in before"
    honcho.stop()
    assert await primary(private_home, "auto") == "local"
