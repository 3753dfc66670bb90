"""A Hermes home with its model, and a real host that is run against them: one process a scenario."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tests.adapters.hermes.hosts.stub_model import StubModel

Step: TypeAlias = "tuple[str, Any]"

DRIVE = Path(__file__).with_name("drive.py")
PATIENCE = 180  # seconds; a run takes two or three, the first one of an environment compiles it

# without a scanner that would be downloaded, a probe of the machine, a second model call for titles, reviews in the background
CONFIG = """\
# a comment that stays
model: {{default: stub-model, provider: custom, base_url: "{url}", api_key: stub-key, context_length: {context}}}
memory: {{memory_enabled: true, user_profile_enabled: false, nudge_interval: 0}}
security: {{tirith_enabled: false}}
agent: {{environment_probe: false}}
auxiliary: {{title_generation: {{enabled: false}}}}
compression: {{enabled: true, protect_last_n: 4, protect_first_n: 1{compression}}}
"""
FILLER = " ".join(f"filler{number}" for number in range(520))  # some 6,000 characters: sixteen turns of it ask for a compaction


class World:
    """One home.  ``python`` is an interpreter that has the host and memoryd."""

    def __init__(self, root: Path, python: Path, model: StubModel) -> None:
        self.root = root
        self.python = python
        self.model = model
        self.home = root / "hermes"
        self.cwd = root / "work"
        self.environ: dict[str, str] = {}
        for folder in (self.home, self.cwd):
            folder.mkdir()

    @property
    def store(self) -> Path:
        return self.home / "memoryd-store"

    def configure(self, compression: str = "", home: Path | None = None) -> None:
        """Write config.yaml and install memoryd into it, with the command line of the wheel."""
        home = home or self.home
        text = CONFIG.format(url=self.model.url, context=self.model.context, compression=compression and f", {compression}")
        (home / "config.yaml").write_text(text)
        self.memoryd("install", "hermes", "--hermes-home", str(home))

    def settings(self, **values: str) -> None:
        """What a user sets for memoryd, as the dashboard writes it."""
        path = self.home / "memoryd/config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(values))

    # -- processes -----------------------------------------------------------------------------------------------------------

    def env(self) -> Mapping[str, str]:
        """Nothing of the user's: the host sees this home and this model only."""
        kept = {name: os.environ[name] for name in ("PATH", "KF_RULE_CACHE_DIR", "TMPDIR") if name in os.environ}
        ours = {
            "HOME": str(self.root), "HERMES_HOME": str(self.home), "MEMORYD_HOME": str(self.root / "memoryd"),
            "HERMES_QUIET": "1", "NO_COLOR": "1", "TERM": "dumb", "HERMES_YOLO_MODE": "1", "HERMES_ACCEPT_HOOKS": "1",
        }  # fmt: skip
        return {**kept, **ours, **self.environ}

    def run(self, *command: str | Path, code: int | None = 0) -> str:
        done = subprocess.run(
            list(map(str, command)), env=self.env(), cwd=self.cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert code in (None, done.returncode), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def hermes(self, *words: str, code: int | None = 0) -> str:
        """The host's own command."""
        return self.run(self.python.with_name("hermes"), *words, code=code)

    def memoryd(self, *words: str, code: int | None = 0) -> str:
        return self.run(self.python, "-m", "memoryd", *words, code=code)

    def drive(self, *steps: Step, code: int = 0, before: Sequence[str | Path] = ()) -> list[dict[str, Any]]:
        """A process of the host that takes ``steps`` and ends; what came of each.  ``before`` are words that start it."""
        self.run(*before, self.python, DRIVE, self._scenario(steps), code=code)
        return self.told()

    def start(self, *steps: Step) -> subprocess.Popen[bytes]:
        """The same, still running; whoever starts it ends it."""
        command = [str(self.python), str(DRIVE), str(self._scenario(steps))]
        with open(self.root / "running.log", "ab") as log:
            return subprocess.Popen(command, env=self.env(), cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _scenario(self, steps: Sequence[Step]) -> Path:
        out, path = self.root / "out.jsonl", self.root / "scenario.json"
        out.unlink(missing_ok=True)
        path.write_text(json.dumps({"home": str(self.home), "url": self.model.url, "out": str(out), "steps": list(steps)}))
        return path

    def told(self) -> list[dict[str, Any]]:
        out = self.root / "out.jsonl"
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []

    def paused(self, name: str) -> None:
        """Wait until the running process says that it is at this pause."""
        deadline = time.monotonic() + PATIENCE
        while not any(line.get("paused") == name for line in self.told()):
            assert time.monotonic() < deadline, (self.root / "running.log").read_text()[-3000:]
            time.sleep(0.02)

    # -- what is in the store, seen from another process -----------------------------------------------------------------------

    def events(self, kind: str, store: Path | None = None) -> list[dict[str, Any]]:
        """The events of a kind in the log, in order."""
        lines = self.memoryd("--home", str(store or self.store), "export", "--all-users").splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return [row for row in rows if row.get("kind") == kind]

    def turns(self, store: Path | None = None) -> list[tuple[str, str]]:
        """What the log has of who said what: session and the user's words."""
        return [(row["scope"]["session"], row["user"]) for row in self.events("turn", store)]

    def archived(self, session: str, store: Path | None = None) -> list[dict[str, Any]]:
        """The checkpoints of a session, the latest first."""
        words = ("--home", str(store or self.store), "--session", session, "--json", "checkpoint", "list")
        found: list[dict[str, Any]] = json.loads(self.memoryd(*words))["checkpoints"]
        return found

    def restored(self, checkpoint: str, store: Path | None = None) -> list[dict[str, Any]]:
        """The rows of a checkpoint."""
        said = self.memoryd("--home", str(store or self.store), "checkpoint", "restore", checkpoint)
        return [json.loads(line) for line in said.splitlines()]


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """Send a signal and wait for the end."""
    process.send_signal(number)
    return process.wait(PATIENCE)
