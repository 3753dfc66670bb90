"""An agent in a process of its own, for tests that end it: ``child_agent.py HOME MODE``; it prints what it has done, line by line."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tests.adapters.hermes.manager import Manager, said


def main(home: Path, mode: str) -> None:
    from memoryd_hermes import MemorydProvider

    manager = Manager(contexts=mode != "old")
    manager.register_memory_provider(MemorydProvider())
    manager.initialize_all("s1", hermes_home=str(home), platform="cli", agent_context="primary")
    if mode == "fill":  # what another process is about to tell
        manager.on_session_end(said(("one", "1"), ("two", "2")))
        manager.shutdown_all()
        sys.exit(0)
    history = said()
    for number in range(3):
        manager.turn(number, f"turn {number} of the harbour", f"answer {number}", history)
    manager.flush_pending()
    print("answered", flush=True)
    if mode == "checkpoint":
        _, text = manager.compact(history, required=True)
        print(text, flush=True)
    if mode == "exit":
        sys.exit(0)  # nobody calls shutdown
    if mode == "kill-self":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
