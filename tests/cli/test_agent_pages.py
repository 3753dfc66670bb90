"""The commands of the pages about agents run as they stand there, one after the other, with programs of the agents' names that do nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd.core import scope
from memoryd.hosts import find_host, host_names

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/howto"


def script_of(page: str) -> str:
    """Every shell block; ``pipx`` does nothing here, and a daemon is waited for."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (PAGES / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    wait = 'until [ -S "$XDG_RUNTIME_DIR/memoryd/memoryd.sock" ]; do sleep 0.05; done'
    return "\n".join(blocks).replace("memoryd serve &", f"memoryd serve > /dev/null &\n{wait}")


@pytest.fixture
def environ(private_home: Path) -> dict[str, str]:
    home = private_home.parent
    (home / "run").mkdir(mode=0o700)
    programs = home / "programs"
    programs.mkdir()
    for name, says in (("pipx", ""), ("claude", "2.1.332 (Claude Code)"), ("codex", "codex-cli 0.171.0")):
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


DRIVER = """
import { memoryd } from "./plugin.mjs";
const text = (value) => ({ type: "text", text: value });
const data = [
  { info: { role: "user" }, parts: [text("Fix the flaky test"), { type: "file" }] },
  { info: { role: "assistant" }, parts: [text("The sleep"), text("is the cause.")] },
];
const hooks = await memoryd({ client: { session: { messages: async ({ path }) => ({ data: path.id === "s-1" ? data : [] }) } } });
const output = { context: [] };
await hooks["experimental.session.compacting"]({ sessionID: "s-1" }, output);
if (output.context.length) process.exit(3);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no JavaScript here")
def test_the_plugin_for_opencode_archives_or_throws(environ: dict[str, str], tmp_path: Path, private_home: Path) -> None:
    (code,) = re.findall(r"^```js\n(.*?)^```$", (PAGES / "other-agents.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "plugin.mjs").write_text(code)
    (tmp_path / "driver.mjs").write_text(DRIVER)
    command = ["node", "driver.mjs"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with Memory() as memory, scope(user="default"):
        (found,) = memory.checkpoints(session="s-1")
        row = memory.restore(found.id).rows[1]
    assert row is not None
    assert json.loads(row) == {"role": "assistant", "content": "The sleep\nis the cause."}
    (private_home / "memoryd.toml").write_text("[gate]\nmode = 7\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=120, check=False)
    assert done.returncode == 1
    assert "memoryd: " in done.stderr, "an exception is what holds OpenCode back"


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
