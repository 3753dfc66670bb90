"""The commands of the pages about agents run as they stand there, one after the other, with programs of the agents' names that do nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.hosts import find_host, host_names

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/howto"


def script_of(page: str) -> str:
    """Every shell block; ``pip`` does nothing here, and a daemon is waited for."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (PAGES / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    wait = 'until [ -S "$XDG_RUNTIME_DIR/memoryd/memoryd.sock" ]; do sleep 0.05; done'
    return "\n".join(blocks).replace("memoryd serve &", f"memoryd serve > /dev/null &\n{wait}")


@pytest.fixture
def environ(private_home: Path) -> dict[str, str]:
    home = private_home.parent
    (home / "run").mkdir(mode=0o700)
    programs = home / "programs"
    programs.mkdir()
    for name, says in (("pip", ""), ("claude", "2.1.332 (Claude Code)"), ("codex", "codex-cli 0.171.0")):
        (programs / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (programs / name).chmod(0o755)
    for folder in (".claude/projects/-w-foo", ".codex/sessions", ".gemini", ".cursor"):
        (home / folder).mkdir(parents=True)
    return {**os.environ, "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("claude-code.md", ["gated", "ok\tgate\t", "ok\tdaemon\t", "mode: block", "recording goes on", "without the hooks of memoryd"]),
        ("codex.md", ["type /hooks", "mode: block", "warn\ttrusted\t", "without the hooks of memoryd"]),
        ("mcp.md", ["claude mcp add --scope user memoryd", "ok\textra\t", "without the server memoryd"]),
        ("other-agents.md", ["advisory", "without the hooks of memoryd", "the server memoryd"]),
    ],
)
def test_the_commands_run(page: str, seen: list[str], environ: dict[str, str], tmp_path: Path) -> None:
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script_of(page)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=environ, start_new_session=True,
    ) as script:  # fmt: skip
        try:
            code = script.wait(timeout=120)
        finally:
            try:
                os.killpg(script.pid, signal.SIGTERM)  # the daemon that the page starts
            except ProcessLookupError:
                pass
        out, err = script.communicate()
    assert code == 0, out + err
    for text in seen:
        assert text in out, out
    assert list(tmp_path.iterdir()) == []


def test_every_host_has_its_page() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    for name in host_names():
        assert f"memoryd install {name}" in text


def test_the_pages_promise_what_the_hosts_say() -> None:
    table = (PAGES / "other-agents.md").read_text("utf-8")
    for name, label in (("gemini", "Gemini CLI"), ("claude-code", "Claude Code"), ("codex", "Codex"), ("hermes", "Hermes Agent")):
        (line,) = re.findall(rf"^\| {label} \|.*$", table, re.MULTILINE)
        observes = find_host(name).info.capability == "observe-only"
        assert ("observe:" in line) is observes
        assert ("refused" in line or "gate" in line) is not observes
