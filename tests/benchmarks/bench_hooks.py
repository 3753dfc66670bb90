"""The hook program of agents: what it costs before every prompt, and what the gate costs before a compaction.

The processes are whole: started, given a payload, waited for.  Baselines are a Python that does nothing (``python -I -c pass``), the same
hook with an event that means nothing, and for the gate a process that makes the same bytes durable: read, write, fsync, rename, fsync of the
directory.  (Ours also parses, tells apart, hashes, compresses and proves them.)
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _figures import figure, interleave, median, print_table, texts

ROUNDS = 40
GATES = 15
TRANSCRIPT = 5_000_000
HOOK = Path(__file__).parents[2] / "memoryd/hook.py"
NOTHING = [sys.executable, "-I", "-c", "pass"]


class Process:
    """Whole child processes: their wall and CPU time in seconds."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self.cpu: dict[str, list[float]] = {}

    def run(self, name: str, command: list[str], payload: bytes = b"") -> None:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment)
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        with child.stdin, child.stdout, child.stderr:
            child.stdin.write(payload)
            child.stdin.close()
            child.stdout.read()
            _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
        self.cpu.setdefault(name, []).append(used.ru_utime + used.ru_stime)


def hook(event: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(HOOK), "claude", event]


@contextmanager
def daemon(folder: Path) -> Iterator[dict[str, str]]:
    """``memoryd serve``, and the environment in which hooks find it."""
    environment = {**os.environ, "MEMORYD_HOME": str(folder / "home"), "MEMORYD_SOCKET": str(folder / "m.sock")}
    serving = subprocess.Popen([sys.executable, "-m", "memoryd", "serve"], stdout=subprocess.PIPE, env=environment)
    assert serving.stdout is not None
    try:
        serving.stdout.readline()
        yield environment
    finally:
        serving.terminate()
        serving.wait()
        serving.stdout.close()


def transcript(path: Path, seed: int, size: int = TRANSCRIPT) -> None:
    """A session of Claude Code: prose, tool calls, and the output of tools, which is most of it."""
    luck, words = random.Random(seed), texts(100_000, seed, low=20, high=60)
    lines: list[bytes] = []
    written = number = 0
    while written < size:
        number += 1
        message: dict[str, Any]
        match number % 4:
            case 1:
                message = {"role": "user", "content": next(words)}
            case 2:
                call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"/w/{luck.random()}.py"}}
                message = {"id": f"m{number}", "role": "assistant", "content": [call]}
            case 3:
                output = "\n".join(next(words) for _ in range(luck.randint(1, 60)))
                message = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": output}]}
            case _:
                message = {"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": next(words)}]}
        kind = "assistant" if message["role"] == "assistant" else "user"
        row = {"type": kind, "uuid": f"{luck.getrandbits(128):032x}", "sessionId": f"s{seed}", "isSidechain": False, "message": message}
        lines.append(json.dumps(row).encode() + b"\n")
        written += len(lines[-1])
    path.write_bytes(b"".join(lines))


def payload(session: str, path: Path, **more: Any) -> bytes:
    return json.dumps({"session_id": session, "transcript_path": str(path), "cwd": "/w", "trigger": "auto", **more}).encode()


DURABLE = """
import os, sys
source, target = sys.argv[1:]
with open(source, "rb") as stream:
    data = stream.read()
with open(target + ".draft", "wb") as stream:
    stream.write(data)
    stream.flush()
    os.fsync(stream.fileno())
os.rename(target + ".draft", target)
directory = os.open(os.path.dirname(target), os.O_RDONLY)
os.fsync(directory)
"""
"""The least that makes a copy durable: read, write, fsync, rename, fsync of the directory."""


def _processes(folder: Path) -> list[dict[str, Any]]:
    with daemon(folder) as environment:
        process, file = Process(environment), folder / "small.jsonl"
        transcript(file, 1, 40_000)
        os.utime(file, (1_700_000_000, 1_700_000_000))
        stop, prompt = payload("s1", file), payload("s1", file, prompt="what was that about w1f and w2a")
        process.run("warm", hook("Stop"), stop)
        process.run("warm", hook("UserPromptSubmit"), prompt)
        process.run("warm", hook("PreCompact"), stop)
        times = interleave(
            ROUNDS,
            nothing=lambda: process.run("nothing", NOTHING),
            told=lambda: process.run("told", hook("Stop"), stop),
            prompt=lambda: process.run("prompt", hook("UserPromptSubmit"), prompt),
            noop=lambda: process.run("noop", hook("Unheard"), stop),
            again=lambda: process.run("again", hook("PreCompact"), stop),
        )
    wall, cpu = {name: median(found) for name, found in times.items()}, {name: median(found) for name, found in process.cpu.items()}
    return [
        figure("hook process with daemon, CPU", 1.2, 1.0, cpu["told"] / cpu["nothing"], "x", f"{1e3 * cpu['told']:.1f} ms against python -I -c pass"),
        figure("hook before a prompt, wall p50", 2.5, None, wall["prompt"] / wall["nothing"], "x", f"{1e3 * wall['prompt']:.1f} ms, with recall"),
        figure("gate again, nothing changed", 1.2, None, wall["again"] / wall["noop"], "x", f"{1e3 * wall['again']:.1f} ms against a hook without work"),
    ]


def _gate(folder: Path) -> dict[str, Any]:
    files = [folder / f"s{seed}.jsonl" for seed in range(GATES + 1)]
    for seed, file in enumerate(files):
        transcript(file, seed)
    with daemon(folder) as environment:
        process = Process(environment)
        process.run("warm", hook("PreCompact"), payload("s0", files[0]))
        plain, gated = iter(files[1:]), iter(files[1:])

        def gate() -> None:
            file = next(gated)
            process.run("gate", hook("PreCompact"), payload(file.stem, file))

        copy = [sys.executable, "-I", "-c", DURABLE]
        times = interleave(GATES, plain=lambda: process.run("plain", [*copy, str(next(plain)), str(folder / "copy")]), gate=gate)
    got = {name: median(found) for name, found in times.items()}
    detail = f"{1e3 * got['gate']:.0f} ms against {1e3 * got['plain']:.0f} ms: a process that reads, writes, fsyncs and renames"
    return figure("gate on a transcript of 5 MB, first", 3.0, None, got["gate"] / got["plain"], "x", detail)


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begun = time.monotonic()
        (folder / "small").mkdir()
        (folder / "large").mkdir()
        found = [*_processes(folder / "small"), _gate(folder / "large")]
        print(f"hooks: {time.monotonic() - begun:.0f} s", file=sys.stderr)
        return found


if __name__ == "__main__":
    print_table(run())
