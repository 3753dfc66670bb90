"""A task that crashes is restarted with growing pauses, and given up when it crashes again and again; the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

import memoryd
from memoryd.log import Log
from memoryd.runtime._supervise import Child, supervise
from memoryd.testing import FakeRemote, RemoteFault, registered


@pytest.fixture
def autojump_clock(request: pytest.FixtureRequest) -> MockClock:
    return MockClock(autojump_threshold=getattr(request, "param", 0))  # 0 where nothing waits for a thread


class Task:
    """Crashes as often as it is told, ``after`` seconds into each run; then runs for ever."""

    def __init__(self, crashes: int, after: float = 0.0) -> None:
        self.left = crashes
        self.after = after
        self.begun: list[float] = []

    async def run(self) -> None:
        self.begun.append(trio.current_time())
        await trio.sleep(self.after)
        if self.left:
            self.left -= 1
            raise ZeroDivisionError("".join(["a ", "text"]))  # as an error may quote one
        await trio.sleep_forever()


async def watch(task: Task, seconds: float) -> Child:
    child = Child("task", task.run)
    with trio.move_on_after(seconds):
        await supervise(child, Log("off"), "contain")
    return child


async def test_restarts_have_growing_pauses(autojump_clock: MockClock) -> None:
    task = Task(crashes=4)
    child = await watch(task, 30)
    pauses = [round(later - earlier, 3) for earlier, later in zip(task.begun, task.begun[1:], strict=False)]
    assert pauses == [0.1, 0.2, 0.4, 0.8]
    assert (child.state, len(child.crashes), child.last_error) == ("running", 4, "ZeroDivisionError")
    assert "test_supervise" in child.last_traceback
    assert "a text" not in f"{child}"


async def test_a_task_that_crashes_on_is_given_up_after_five_restarts(autojump_clock: MockClock) -> None:
    task = Task(crashes=100)
    child = await watch(task, 600)
    assert (child.state, len(task.begun)) == ("failed", 6)


async def test_a_task_that_crashes_seldom_is_restarted_for_ever(autojump_clock: MockClock) -> None:
    task = Task(crashes=100, after=20.0)
    child = await watch(task, 20.0 * 120)
    assert (child.state, len(child.crashes)) == ("running", 50)  # the count is bounded, too
    assert task.left == 0


async def test_a_task_that_ends_is_not_restarted(autojump_clock: MockClock) -> None:
    async def run() -> None:
        await trio.sleep(1)

    child = Child("task", run)
    await supervise(child, Log("off"), "contain")
    assert child.status().state == "ended"


async def test_a_bug_may_be_raised_instead(autojump_clock: MockClock) -> None:
    child = Child("task", Task(crashes=1).run)
    with pytest.raises(ZeroDivisionError):
        await supervise(child, Log("off"), "raise")
    assert child.state == "failed"


async def test_cancelling_is_no_crash(autojump_clock: MockClock) -> None:
    child = await watch(Task(crashes=0), 5)
    assert (child.state, child.crashes) == ("running", ())


@pytest.mark.parametrize("autojump_clock", [0.05], indirect=True)
async def test_an_adapter_with_a_bug_breaks_itself_only(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(outage=RemoteFault("bug"))
    settings = {"mirrors": ["fake"], "logging": {"level": "off"}}
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(tmp_path, config=settings, on_bug="contain") as rt:
            rt.sync_turn("zebra", "ok")
            with trio.fail_after(60):
                while (await rt.status()).state != "broken":
                    await trio.sleep(0.5)
            status = await rt.status()
            assert [(task.name, task.last_error) for task in status.tasks if task.state == "failed"] == [
                ("writer fake", "ZeroDivisionError")
            ]
            assert any("writer fake" in note for note in status.notes)
            assert rt.sync_turn("zebra again", "ok").state == "journaled"
            await rt.flush()
            assert len(await rt.recall("zebra")) == 2
            assert (await rt.checkpoint([{"role": "user", "content": "zebra"}])).verdict == "archived"


async def test_a_backend_that_fails_while_it_closes_keeps_nothing_else_from_closing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Failing(FakeRemote):
        async def aclose(self) -> None:
            raise ZeroDivisionError("a bug")

    with registered("fake", lambda context: Failing()):
        async with memoryd.open_runtime(tmp_path, config={"mirrors": ["fake"]}, on_bug="contain") as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("zebra", "ok")
        assert "runtime.close_crashed" in capfd.readouterr().err
        with pytest.raises(ZeroDivisionError):
            async with memoryd.open_runtime(tmp_path, config={"mirrors": ["fake"]}, on_bug="raise"):
                pass
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            assert [hit.text for hit in await rt.recall("zebra")] == ["zebra"]
