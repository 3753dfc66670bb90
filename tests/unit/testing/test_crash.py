from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from memoryd.testing import ChildFailed, CrashChild, CrashServer

COUNT = "import itertools, sys\nfor n in itertools.count():\n    print(n, flush=True)\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "child.py"


def test_a_child_is_killed_after_its_acknowledgements(script: Path) -> None:
    script.write_text(COUNT)
    random = Random(1)
    for _ in range(3):
        with CrashChild([script]) as child:
            acks = child.kill_after(acks=20, within=0.02, random=random)
        assert len(acks) >= 20
        assert acks == [str(n) for n in range(len(acks))]
        assert child.acks == acks


def test_a_line_that_was_cut_promises_nothing(script: Path) -> None:
    script.write_text("import sys, time\nprint('whole', flush=True)\nsys.stdout.write('ha')\nsys.stdout.flush()\ntime.sleep(60)")
    with CrashChild([script]) as child:
        child.wait_for(1)
        assert child.kill() == ["whole"]


def test_arguments_and_environment_reach_the_child(script: Path) -> None:
    script.write_text("import os, sys\nprint(sys.argv[1], os.environ['WHAT'], bool(os.environ['PATH']))")
    with CrashChild([script, "one"], env={"WHAT": "two"}) as child:
        assert child.wait() == ["one two True"]


def test_a_child_that_fails_by_itself_is_loud(script: Path) -> None:
    script.write_text("print('one', flush=True)\nraise KeyError('what went wrong')")
    with CrashChild([script]) as child, pytest.raises(ChildFailed, match="(?s)1 of 2 .*what went wrong"):
        child.wait_for(2)
    with CrashChild([script]) as child, pytest.raises(ChildFailed, match="exit code 1"):
        child.wait()


def test_a_child_that_is_silent_is_given_up(script: Path) -> None:
    script.write_text("import time\ntime.sleep(60)")
    with CrashChild([script]) as child:
        with pytest.raises(ChildFailed, match="0 of 1"):
            child.wait_for(1, timeout=0.05)
        with pytest.raises(ChildFailed, match="still runs"):
            child.wait(timeout=0.05)


def test_a_stopped_child_stands_still_until_resumed(script: Path) -> None:
    script.write_text(COUNT)
    with CrashChild([script]) as child:
        child.wait_for(10)
        child.stop()
        seen = len(child.acks)
        child.resume()
        child.wait_for(seen + 10_000)
        assert child.kill()


def test_a_stopped_child_can_be_killed(script: Path) -> None:
    script.write_text(COUNT)
    with CrashChild([script]) as child:
        child.wait_for(1)
        child.stop()
        assert child.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_leaving_the_block_ends_the_child(script: Path) -> None:
    script.write_text(COUNT)
    with CrashChild([script]) as child:
        child.wait_for(1)
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


FORKED = '''
import os, sys, time
born = []
def warm():
    born.append(os.getpid())
def main(*words):
    if words == ("raise",):
        raise SystemExit("as it was told")
    print(os.getppid() == born[0], *words, os.environ.get("WORD"), flush=True)
    while words != ("end",):
        time.sleep(0.01)
'''


def test_children_of_a_warm_process_are_processes_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "a script's.py"
    script.write_text(FORKED)
    with CrashServer(script) as server:
        with server.child("one", env={"WORD": "w"}) as one, server.child("two") as two:
            assert one.wait_for(1) == ["True one w"] and two.wait_for(1) == ["True two None"]
            assert one.pid != two.pid
            assert one.kill() == ["True one w"]
            os.kill(two.pid, 0)
        with pytest.raises(ProcessLookupError):
            os.kill(two.pid, 0)
        with server.child("end") as ended:
            assert ended.wait() == ["True end None"]
        with server.child("raise") as failed, pytest.raises(ChildFailed, match="exit code 1"):
            failed.wait_for(1)
        with server.child("one") as again:
            assert again.wait_for(1)


def test_a_script_that_cannot_warm_up_is_said(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def warm(): raise OSError('cold')\ndef main(): pass\n")
    with CrashServer(script) as server, pytest.raises(ChildFailed, match="cold"):
        server.child()
