"""How long stages take: percentiles of the latest calls, from any thread."""

from __future__ import annotations

import threading
from pathlib import Path

import memoryd
from memoryd.runtime._stages import STAGES, Stage, make_stages


def test_percentiles_are_of_the_latest_calls() -> None:
    stage = Stage("append")
    assert (stage.status().calls, stage.status().p50_ms, stage.status().p95_ms) == (0, 0.0, 0.0)
    stage.add(3_000_000)
    assert (stage.status().p50_ms, stage.status().p95_ms) == (3.0, 3.0)
    for microseconds in range(1, 101):
        stage.add(microseconds * 1000)
    assert (stage.status().p50_ms, stage.status().p95_ms) == (0.051, 0.096)
    for _ in range(1000):
        stage.add(7_000)
    found = stage.status()
    assert (found.calls, found.p50_ms, found.p95_ms) == (1101, 0.007, 0.007)
    assert found.total_ms == 3 + 5.05 + 7


def test_any_thread_may_add() -> None:
    stage = make_stages()["recall"]
    threads = [threading.Thread(target=lambda: [stage.add(5) for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < stage.calls <= 4000
    assert stage.status().p95_ms == 5e-06


async def test_each_stage_of_a_runtime_is_timed(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            await rt.flush()
            await rt.drain()
            await rt.recall("zebra")
            await rt.prefetch("zebra")
            await rt.checkpoint([{"role": "user", "content": "zebra"}])
        stages = {stage.name: stage for stage in (await rt.status()).stages}
    assert tuple(stages) == STAGES
    for name in set(STAGES) - {"deliver"}:
        assert stages[name].calls, name
        assert 0 < stages[name].p50_ms <= stages[name].p95_ms <= stages[name].total_ms
