"""``memoryd serve`` under a service manager and by hand: how it starts, who is served, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import memoryd
from memoryd.wire import HookCall, HookReplyReader
from tests.daemon.harness import SCOPE, Daemon, Raw, frame, logged, until

LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="memoryd.socket")
os.execv(sys.executable, [sys.executable, "-m", "memoryd", "serve", *sys.argv[2:]])
"""


class Manager:
    """What systemd does for a ``Type=notify`` service with a socket unit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run/memoryd.sock"
        self.home = folder / "home"
        self.path.parent.mkdir(mode=0o700)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.path.chmod(0o600)
        self.listener.listen()
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(folder / "notify"))
        self._notices.settimeout(60)
        self._env = {**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "2000000"}
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        fd = self.listener.fileno()
        command = [sys.executable, "-c", LAUNCH, str(fd), "--home", str(self.home)]
        self.process = subprocess.Popen(command, pass_fds=[fd], env=self._env, stdout=subprocess.DEVNULL)

    def notice(self) -> dict[str, str]:
        lines = self._notices.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listener.close()
        self._notices.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(tmp_path)
    yield found
    found.close()


def test_a_service_manager_starts_it_and_whoever_came_first_is_served(manager: Manager) -> None:
    with Raw(manager.path) as early:
        early.send(frame("hello", ask=0, protocol=[1, 1], client="early", home=None, profile="default"))
        manager.start()
        ready = manager.notice()
        assert ready["READY"] == "1" and ready["MAINPID"] == str(manager.process.pid)
        answer = early.read()
        assert answer["id"] == 0 and answer["result"]["pid"] == manager.process.pid
        id = early.turn("said before the daemon was there")
    assert manager.notice()["WATCHDOG"] == "1"
    manager.process.terminate()
    found: dict[str, str] = {}
    while "STOPPING" not in found:
        found = manager.notice()
    assert manager.process.wait(60) == 0
    assert stat.S_ISSOCK(manager.path.lstat().st_mode), "the socket is the manager's"
    assert logged(manager.home) == {id: "said before the daemon was there"}


def test_who_comes_between_two_daemons_is_served_by_the_next(manager: Manager) -> None:
    manager.start()
    manager.notice()
    manager.process.terminate()
    manager.process.wait(60)
    with Raw(manager.path) as client:
        client.send(frame("hello", ask=1, protocol=[1, 1], client="patient", home=None, profile="default"))
        manager.start()
        answer = client.read()
        assert answer["result"]["pid"] == manager.process.pid


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere what a client has not been answered may be lost")
def test_a_drain_loses_none_of_ten_thousand_events_in_flight(tmp_path: Path) -> None:
    """They lie in the sockets, unread, when SIGTERM comes: half notifications, half calls that want an answer."""
    clients, each = 20, 500
    with Daemon(tmp_path) as daemon, ExitStack() as stack:
        raws = [stack.enter_context(daemon.client()) for _ in range(clients)]
        daemon.signal(signal.SIGSTOP)
        sent = []
        for number, raw in enumerate(raws):
            scope = {"user": "ada", "session": f"s{number}"}
            texts = [f"{number}-{turn}" for turn in range(each)]
            asks = number % 2
            raw.send(
                b"".join(
                    frame("sync_turn", ask=turn if asks else None, user=text, assistant="", scope=scope) for turn, text in enumerate(texts)
                )
            )
            sent.append(texts)
        daemon.signal(signal.SIGTERM)
        daemon.signal(signal.SIGCONT)
        for raw in raws[1::2]:
            seqs = [raw.read()["result"]["seq"] for _ in range(each)]
            assert seqs == sorted(seqs)
            assert raw.read()["method"] == "closing"
            assert raw.read() is None
        assert daemon.wait() == 0
        found = list(logged(daemon.home).values())
    assert len(found) == clients * each
    for texts in sent:
        mine = [text for text in found if text.split("-")[0] == texts[0].split("-")[0]]
        assert mine == texts, "each session in the order in which it was said"


def test_a_sender_that_is_told_learns_how_much_arrived(tmp_path: Path) -> None:
    """A client that goes on sending during the drain gets a broken pipe; all that it could send is there."""
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        done = 0
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                raw.send(frame("sync_turn", user=f"turn {done}", assistant="", scope=SCOPE))
                done += 1
                if done == 300:
                    daemon.signal()
        assert daemon.wait() == 0
        found = list(logged(daemon.home).values())
    assert done >= 300
    assert found[:done] == [f"turn {number}" for number in range(done)]


def test_what_has_begun_is_answered_before_the_end(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        raw.send(frame("checkpoint", ask=1, messages=[{"role": "user", "content": f"m{n}"} for n in range(3000)], scope=SCOPE))
        raw.send(frame("store", ask=2, key="city", value="Oslo", scope=SCOPE))
        daemon.signal()
        answers = {}
        while (found := raw.read()) is not None:
            answers[found.get("id")] = found
        assert answers[1]["result"]["verdict"] == "archived"
        assert answers[2]["result"]["accepted"]["state"] == "journaled"
        assert daemon.wait() == 0
        assert not daemon.path.exists()


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    """A call may go on for as long as the drain allows; who asks twice wants it now, and loses nothing that was accepted."""
    config = "[daemon]\ndrain = 600\n[deadlines]\ndrain = 600\n"
    stopped = [sys.executable, "-c", STOP_THE_PROJECTION]
    with Daemon(tmp_path, config=config) as daemon, daemon.client() as raw:
        id = raw.turn("accepted")
        with subprocess.Popen([*stopped, daemon.home], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
            raw.turn("waits for its projection")
            raw.send(frame("drain", ask=77, timeout=600, scope=SCOPE))
            raw.send(frame("ping", ask=78))
            assert raw.read()["id"] == 78
            daemon.signal()
            assert raw.read()["method"] == "closing"
            assert daemon.process.poll() is None
            daemon.signal()
            assert daemon.wait(30) == 128 + signal.SIGTERM
            holder.kill()
        assert id in logged(daemon.home)
        daemon.start()
        daemon.check()


STOP_THE_PROJECTION = """
import sys, time
from pathlib import Path
import apsw
from memoryd.store import profile_directory
connection = apsw.Connection(str(profile_directory(Path(sys.argv[1]), "default") / "memory.db"))
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_ends_it_in_order(tmp_path: Path, number: int) -> None:
    if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("this run is under nohup, and so is what it starts")
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        raw.turn("hello")
        daemon.signal(number)
        assert daemon.wait() == 0
        assert daemon.errors == ""


def test_under_nohup_the_end_of_the_terminal_is_not_its_end(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Daemon(tmp_path) as daemon:
            daemon.signal(signal.SIGHUP)
            daemon.check()
            daemon.stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hook_program_is_answered_on_the_same_socket(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, Raw(daemon.path) as raw:
        raw.send(HookCall("nobody", "PreCompact", "/", {"MEMORYD_HOME": str(daemon.home)}, b"{}").encode())
        reader, reply = HookReplyReader(), None
        while reply is None:
            reply = reader.receive(raw.socket.recv(4096))
        assert reply.code == 2 and b"memoryd" in reply.stderr, "a gate of a host that is not known refuses"
        assert raw.is_closed()
        daemon.check()


def test_a_second_daemon_says_who_is_there_and_changes_nothing(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        second = subprocess.run(daemon._command, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 1
        assert second.stderr.startswith("memoryd: another daemon serves ")
        assert f"(pid {daemon.pid}, memoryd {memoryd.__version__})" in second.stderr
        daemon.check()


def test_a_wrong_path_and_a_wrong_address_are_one_line(tmp_path: Path) -> None:
    def failed(*arguments: str) -> str:
        command = [sys.executable, "-m", "memoryd", "serve", "--home", str(tmp_path / "home"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 64 and done.stderr.count("\n") == 1 and not done.stdout
        return done.stderr

    assert "the socket's path has" in failed("--socket", "/tmp/" + "x" * 120)
    (tmp_path / "diary").write_text("dear diary")
    assert "in the way and no socket" in failed("--socket", str(tmp_path / "diary"))
    assert "expected HOST:PORT" in failed("--socket", str(tmp_path / "s"), "--metrics", "9464")
    assert "cannot listen on" in failed("--socket", str(tmp_path / "s"), "--metrics", "192.0.2.1:9464")


def test_an_older_client_and_a_newer_one_are_told(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        for spoken, problem in (([7, 9], "the daemon is older than this client"), ([0, 0], "is not [oldest, newest]")):
            with Raw(daemon.path) as raw:
                raw.send(frame("hello", ask=1, protocol=spoken, client="t", home=None, profile="default"))
                assert problem in raw.read()["error"]["message"]
                assert raw.read() is None
        daemon.check()


def test_a_batch_is_answered_as_one(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        calls = [frame("sync_turn", ask=n, user=f"turn {n}", assistant="", scope=SCOPE) for n in range(500)]
        told = frame("sync_turn", user="told", assistant="", scope=SCOPE)
        slow = frame("recall", ask="r", query="told", scope=SCOPE)
        raw.send(b"[" + b",".join(call.strip() for call in (*calls, told, slow)) + b"]\n")
        answers = {found["id"]: found["result"] for found in raw.read()}
        assert [answers[n]["seq"] for n in range(500)] == list(range(1, 501))
        assert [hit["text"] for hit in answers["r"]["hits"]] == ["told"]


def test_profiles_and_homes_are_kept_apart(tmp_path: Path) -> None:
    with Daemon(tmp_path, config="[daemon]\nprofiles = 2\n") as daemon:
        with daemon.client("work") as work, daemon.client("play") as play, daemon.client("work", tmp_path / "other") as other:
            work.turn("about work")
            play.turn("about play")
            other.turn("elsewhere")
            for raw, text in ((work, "about work"), (play, "about play"), (other, "elsewhere")):
                hits = raw.call("recall", query=text, scope={"user": "ada"})["hits"]
                assert [hit["text"] for hit in hits] == [text]
            opened = play.call("daemon_status")["profiles"]
        assert len(opened) <= 2
        daemon.stop()
        assert list(logged(daemon.home, "work").values()) == ["about work"]
        assert list(logged(daemon.home, "play").values()) == ["about play"]
        assert list(logged(tmp_path / "other", "work").values()) == ["elsewhere"]


def test_a_profile_that_was_closed_opens_again_under_a_connection(tmp_path: Path) -> None:
    """A host keeps its connection for days: what it says after a pause is in order, and nothing of it is lost."""
    with Daemon(tmp_path, config="[daemon]\nprofile_idle = 0.2\n") as daemon, daemon.client() as raw, Raw(daemon.path) as other:
        other.hello(None)
        for number in range(3):
            until(lambda: not other.call("daemon_status")["profiles"])
            raw.send(b"".join(frame("sync_turn", user=f"{number}-{n}", assistant="", scope=SCOPE) for n in range(200)))
            raw.call("flush", scope=SCOPE)
        daemon.stop()
        assert list(logged(daemon.home).values()) == [f"{number}-{n}" for number in range(3) for n in range(200)]


def test_calls_of_a_connection_begin_in_the_order_they_were_sent(tmp_path: Path) -> None:
    """Slow ones too: of two stores of one key that are sent together the later one wins, and a recall sees the turn before it."""
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        for round in range(20):
            raw.send(
                b"".join(
                    frame("store", ask=f"{round}-{n}", key="city", value=f"{round}-{n}", scope=SCOPE) for n in range(10)
                )
                + frame("sync_turn", user=f"word{round}", assistant="", scope=SCOPE)
                + frame("recall", ask="recall", query=f"word{round}", scope=SCOPE)
            )
            answers = [raw.read() for _ in range(11)]
            seqs = {found["id"]: found["result"]["accepted"]["seq"] for found in answers if found["id"] != "recall"}
            assert sorted(seqs, key=lambda id: int(id.split("-")[1])) == sorted(seqs, key=lambda id: seqs[id])
            [hits] = [found["result"]["hits"] for found in answers if found["id"] == "recall"]
            assert [hit["text"] for hit in hits] == [f"word{round}"]
            assert raw.call("retrieve", key="city", scope=SCOPE)["value"] == f"{round}-9"
