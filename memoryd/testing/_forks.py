"""Children to kill that start in milliseconds: forked from one process that has loaded what is slow to load.

::

    with CrashServer(script) as server:              # script: def warm() -> None, def main(*arguments: str) -> None
        with server.child(home, "s", env={...}) as child:
            promised = child.kill_after(acks=20, within=0.05, random=Random(seed))

``warm`` runs once, and may not open a store, start a thread or an event loop; ``main`` runs in a process of its own for each child.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from memoryd.testing._crash import ChildFailed, CrashChild

__all__ = ["CrashServer"]

_POLL_S = 0.005


class CrashServer:
    """One warm process.  Leaving the block ends it; children are ended by their own blocks, and cannot be stopped and resumed."""

    def __init__(self, script: str | os.PathLike[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._folder = tempfile.TemporaryDirectory(prefix="memoryd-forks-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, os.fspath(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._born = 0

    def child(self, *arguments: str | os.PathLike[str], env: Mapping[str, str] | None = None) -> CrashChild:
        """``main(*arguments)`` in a new process, with ``env`` added to the server's environment."""
        self._born += 1
        pipe = Path(self._folder.name) / str(self._born)
        os.mkfifo(pipe, 0o600)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # opened first: the server then opens without waiting
        pid = self._ask({"main": [os.fspath(a) for a in arguments], "env": dict(env or {}), "stdout": str(pipe)})
        os.set_blocking(reading, True)
        forked = _Forked(self, pid, os.fdopen(reading, "rb"))
        return CrashChild((), process=cast("subprocess.Popen[bytes]", forked))

    def reap(self, pid: int) -> int | None:
        """The exit code of a child, as :class:`subprocess.Popen` has it, or None while it runs."""
        code: int | None = self._ask({"reap": pid})
        return code

    def _ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        if not (answer := self._process.stdout.readline()):
            self._errors.seek(0)
            raise ChildFailed(f"the server of children ended: {self._errors.read().decode('utf-8', 'replace')[-4000:]}")
        return json.loads(answer)

    def __enter__(self) -> CrashServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()


class _Forked:
    """What :class:`CrashChild` uses of a ``Popen``, for a grandchild."""

    def __init__(self, server: CrashServer, pid: int, stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._server = server

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.reap(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("main", timeout or 0)
            time.sleep(_POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(script: str) -> None:
    names = runpy.run_path(script, run_name="warm")
    names["warm"]()
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "main" in asked:
            answer: int | None = _fork(names["main"], asked)
        else:
            pid, status = os.waitpid(asked["reap"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fork(main: Any, asked: Mapping[str, Any]) -> int:
    pipe = os.open(asked["stdout"], os.O_WRONLY)
    if pid := os.fork():
        os.close(pipe)
        return pid
    code = 1
    try:
        os.environ.update(asked["env"])
        os.dup2(pipe, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        main(*asked["main"])
        code = 0
    except BaseException:  # this process ends here: its parent reads what happened
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)  # the server's own end, its buffers and its loop, are not the child's


if __name__ == "__main__":
    _serve(sys.argv[1])
