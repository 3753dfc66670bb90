"""A real process that is killed at a random instant, to see what it had promised and what is left.

::

    with CrashChild([script, home]) as child:
        promised = child.kill_after(acks=20, within=0.05, random=Random(seed))
    # every line of ``promised`` was written whole before the kill: now open ``home`` and compare

The child prints one line for each thing it promises, flushed, as soon as it is promised.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from random import Random
from types import TracebackType

__all__ = ["ChildFailed", "CrashChild"]

TAIL = 4000


class ChildFailed(AssertionError):
    """The child ended by itself, or promised too little before the deadline; its last stderr is in the message."""


class CrashChild:
    """``python *arguments`` in a process of its own.  ``env`` is added to this process's.  Leaving the block kills it.

    ``process`` is one that runs already, its stdout a pipe: :class:`CrashServer` forks such ones.
    """

    def __init__(
        self, arguments: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:  # fmt: skip
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._process = process or subprocess.Popen(
            [sys.executable, *(os.fspath(a) for a in arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **(env or {})},
        )
        self._acks: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name=f"acks of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def acks(self) -> list[str]:
        """The whole lines that the child has written so far, without their newlines."""
        with self._news:
            return list(self._acks)

    def wait_for(self, acks: int, timeout: float = 30.0) -> list[str]:
        """Wait until there are at least that many lines; raises :class:`ChildFailed` where they do not come in ``timeout`` seconds."""
        with self._news:
            self._news.wait_for(lambda: len(self._acks) >= acks or self._ended, timeout)
            if len(self._acks) >= acks:
                return list(self._acks)
        raise ChildFailed(f"{len(self.acks)} of {acks} acknowledgements; {self._state()}")

    def kill_after(self, acks: int, within: float, random: Random, timeout: float = 30.0) -> list[str]:
        """SIGKILL at a random instant of the ``within`` seconds that follow the given number of lines; all whole lines."""
        self.wait_for(acks, timeout)
        time.sleep(random.uniform(0, within))
        return self.kill()

    def kill(self) -> list[str]:
        """SIGKILL now; all whole lines.  Raises :class:`ChildFailed` where the child had failed by itself before."""
        if self._process.poll() not in (None, 0):
            raise ChildFailed(self._state())
        self._process.kill()
        return self._finish()

    def stop(self) -> None:
        """SIGSTOP; returns when the process stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._process.returncode = os.waitstatus_to_exitcode(status)
            raise ChildFailed(self._state())

    def resume(self) -> None:
        """SIGCONT after :meth:`stop`."""
        self._process.send_signal(signal.SIGCONT)

    def wait(self, timeout: float = 30.0) -> list[str]:
        """Wait for the child's own end, which must be a success; all whole lines."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"still runs after {timeout} s; {self._state()}") from None
        if code != 0:
            raise ChildFailed(self._state())
        return self._finish()

    def __enter__(self) -> CrashChild:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._finish()
        self._errors.close()

    def _finish(self) -> list[str]:
        self._process.wait()
        self._reader.join()
        return self.acks

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            for line in pipe:
                if line.endswith(b"\n"):  # a line cut by the kill promises nothing
                    with self._news:
                        self._acks.append(line[:-1].decode("utf-8", "replace"))
                        self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _state(self) -> str:
        code = self._process.poll()
        self._errors.seek(0)
        tail = self._errors.read().decode("utf-8", "replace")[-TAIL:]
        return f"exit code {code}; stderr: {tail or 'empty'}"
