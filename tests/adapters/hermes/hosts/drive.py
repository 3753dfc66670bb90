"""Runs in the interpreter of a host: one agent, and the steps that a scenario gives as JSON.

    python drive.py SCENARIO.json

``SCENARIO.json`` has ``home``, ``url``, ``out`` and ``steps``; each step is ``[name, argument]``.  For every step one JSON line goes to
``out``: what came of it, or the error that it ended in.  A step that fails does not end the run, as it would not end a user's session.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

AGENT = {"provider": "custom", "api_mode": "chat_completions", "model": "stub-model", "quiet_mode": True, "platform": "cli"}


class Driver:
    """One agent after another, each with the history that it has."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.home = Path(scenario["home"])
        self.out = open(scenario["out"], "a", encoding="utf-8")  # noqa: SIM115 - open until the process ends, however it does
        self.history: list[Any] = []
        self.agent: Any = None

    def run(self) -> None:
        for number, (name, argument) in enumerate(self.scenario["steps"]):
            step: Callable[[Any], Any] = getattr(self, "do_" + name)
            began = time.monotonic()
            try:
                answer = {"result": step(argument)}
            except Exception as error:  # noqa: BLE001 - whatever the host ends a step with is what the scenario wants to know
                causes = [type(kind).__name__ for kind in (error, error.__cause__, error.__context__) if kind is not None]
                answer = {"error": str(error), "cause": str(error.__cause__ or ""), "classes": causes}
            self.tell({"step": number, "name": name, "seconds": time.monotonic() - began, **answer})

    def tell(self, line: dict[str, Any]) -> None:
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def do_agent(self, session: str | dict[str, Any]) -> dict[str, Any]:
        """A new agent for a session; other arguments of the host's class may be given with it."""
        from hermes_state import SessionDB
        from run_agent import AIAgent

        given = {"session_id": session} if isinstance(session, str) else dict(session)
        toolsets = given.pop("toolsets", ["memory", "file"])
        self.agent = AIAgent(
            **{**AGENT, "base_url": self.scenario["url"], "api_key": "stub-key", **given},
            session_db=SessionDB(), enabled_toolsets=toolsets, skip_context_files=True,
        )  # fmt: skip
        self.agent.suppress_status_output = True
        self.history = []
        manager = getattr(self.agent, "_memory_manager", None)
        return {"providers": [provider.name for provider in manager.providers] if manager else []}

    def do_turn(self, text: str | list[Any]) -> str:
        done = self.agent.run_conversation(text, conversation_history=self.history)
        self.history = done["messages"]
        return str(done["final_response"])

    def do_compress(self, _: object) -> dict[str, Any]:
        before = list(self.history)
        self.history = self.agent._compress_context(list(before), "", force=True)[0]
        return {"before": len(before), "after": len(self.history)}

    def do_history(self, _: object) -> list[Any]:
        return [[row.get("role"), row.get("content")] for row in self.history]

    def do_stored(self, session: str) -> list[Any]:
        """What the host's own database has of a session."""
        from hermes_state import SessionDB

        return [[row.get("role"), row.get("content")] for row in SessionDB().get_messages_as_conversation(session)]

    def do_flush(self, _: object) -> bool:
        return bool(self.agent._memory_manager.flush_pending(timeout=10))

    def do_new(self, _: object) -> None:
        self.agent.commit_memory_session(self.history)
        self.history = []

    def do_end(self, _: object) -> Any:
        self.agent.shutdown_memory_provider(self.history)
        drained = getattr(self.agent._memory_manager, "shutdown_drain_state", None)
        self.agent.close()
        return drained

    def do_exit(self, code: int) -> None:
        """As a crash: nothing is closed, no ``atexit`` runs."""
        self.out.flush()
        os._exit(code)

    def do_pause(self, name: str) -> None:
        """Say that the scenario is here, and go on when the test has made the file."""
        self.tell({"paused": name})
        deadline = time.monotonic() + 60
        while not (self.home / name).exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def do_home(self, home: str) -> None:
        """Go on in the context of another profile, as a gateway does for each message."""
        from hermes_constants import set_hermes_home_override

        set_hermes_home_override(home)

    def do_break(self, _: object) -> None:
        """A folder stands where the archive would be: it can neither be opened nor made."""
        for archive in self._archives():
            for old in archive.parent.glob("archive.db*"):
                old.rename(archive.parent / f"kept.{old.name}")
            archive.mkdir()

    def do_heal(self, _: object) -> None:
        for archive in self._archives():
            archive.rmdir()
            for old in archive.parent.glob("kept.*"):
                old.rename(archive.parent / old.name.removeprefix("kept."))

    def _archives(self) -> list[Path]:
        return [folder / "archive.db" for folder in (self.home / "memoryd-store/profiles").iterdir()]

    def do_fill(self, place: str) -> int:
        """Write a file there until the disk has no room, not for one byte."""
        path, written = self.home / place, 0
        with open(path, "wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1 << 9, 1):
                try:
                    while True:
                        written += file.write(b"x" * size)
                except OSError:
                    continue
        return written

    def do_remove(self, place: str) -> None:
        (self.home / place).unlink()

    def do_copy(self, place: str) -> None:
        """Copy a folder to ``copy`` in the home, with the databases as SQLite copies them."""
        import shutil
        import sqlite3

        shutil.copytree(self.home / place, self.home / "copy", ignore=shutil.ignore_patterns("*.db", "*.db-*"))
        for path in (self.home / place).rglob("*.db"):
            target = self.home / "copy" / path.relative_to(self.home / place)
            with sqlite3.connect(path) as source, sqlite3.connect(target) as copy:
                source.backup(copy)

    def do_env(self, values: dict[str, str]) -> None:
        os.environ.update(values)

    def do_call(self, argument: list[str]) -> dict[str, Any]:
        """Run memoryd as another process: ``argument`` are its words."""
        import subprocess

        done = subprocess.run([sys.executable, "-m", "memoryd", *argument], capture_output=True, text=True, check=False)
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def do_dashboard(self, values: dict[str, str]) -> None:
        """What the host's web server does with a form: all values are text."""
        from plugins.memory.config_schema import get_provider_config_schema

        try:
            from hermes_cli.web_routers import memory_providers as server
        except ImportError:
            from hermes_cli import web_server as server
        server._write_provider_flat(get_provider_config_schema("memoryd"), values)

    def do_found(self, name: str) -> dict[str, Any]:
        """How the host finds a provider, its command and its skill."""
        import plugins.memory as memory
        from plugins.memory.config_schema import get_provider_config_schema

        schema = get_provider_config_schema(name)
        provider = memory.load_memory_provider(name)
        found = {
            "names": memory.list_memory_provider_names(),
            "commands": [command["name"] for command in memory.discover_plugin_cli_commands()],
            "fields": [field.key for field in schema.fields] if schema else None,
            "provider": f"{type(provider).__module__}:{type(provider).__qualname__}" if provider else None,
            "ours": sorted(module for module in sys.modules if module.split(".")[0] == "memoryd_hermes"),
            "dir": str(memory.find_provider_dir(name)),
        }
        try:
            from hermes_cli.plugins import get_plugin_manager

            found["skill"] = str(get_plugin_manager().find_plugin_skill("memoryd:maintenance") or "")
        except (ImportError, AttributeError):
            found["skill"] = ""
        return found


def main() -> None:
    scenario = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    os.environ["HERMES_HOME"] = scenario["home"]  # before anything of the host is imported
    Driver(scenario).run()


if __name__ == "__main__":
    main()
