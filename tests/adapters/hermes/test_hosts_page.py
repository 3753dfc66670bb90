"""The commands of docs/howto/hermes.md, as they stand there: a fresh environment, Hermes from the package index, the wheel of this tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.hermes.conftest import HOSTS
from tests.adapters.hermes.hosts.stub_model import stub_model
from tests.adapters.hermes.hosts.world import CONFIG

pytestmark = pytest.mark.hosts

PAGE = Path(__file__).parents[3] / "docs/howto/hermes.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"  # read here: tests have a home of their own
SAYS = {  # what is looked for in what a command prints
    "memoryd install hermes --dry-run": "would edit",
    "memoryd install hermes": "cannot be refused a compaction",
    "hermes memoryd recall": "kestrel",
    "hermes memoryd status": "log ok",
    "memoryd doctor hermes": "no checkpoint contract",
    "memoryd --home ~/.hermes/memoryd-store import": "imported 1 of",
    "memoryd uninstall hermes": "stays in",
}


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


def test_the_commands_of_the_page(wheel: Path, tmp_path: Path) -> None:
    if not HOSTS:
        pytest.skip("there is no host: make test-hosts")
    home, programs = tmp_path / "home", tmp_path / "programs"
    for folder in (home / ".hermes/memories", programs):
        folder.mkdir(parents=True)
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin/python3")
    (home / "constraints.txt").write_text(f"memoryd @ {wheel.as_uri()}\n")
    (home / ".hermes/memories/MEMORY.md").write_text("The user's cat answers to Pixel")
    with stub_model() as model:
        (home / ".hermes/config.yaml").write_text(CONFIG.format(url=model.url, context=model.context, compression=""))
        told = run(commands(), home, programs)
        assert "kestrel" in model.asked[-1]["last_user"].partition("<memory-context>")[2]
    for command, said in SAYS.items():
        assert any(said in output for line, output in told if line.startswith(command)), (command, told)
    assert (home / ".hermes/config.yaml").read_text() == CONFIG.format(url=model.url, context=model.context, compression="").replace(
        "memory: {", "memory: {provider: '', "
    )
    assert (home / ".hermes/memoryd-store/profiles").is_dir()


def run(lines: list[str], home: Path, programs: Path) -> list[tuple[str, str]]:
    """Each line with what it printed, all in one shell."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "KF_RULE_CACHE_DIR"}
    environ = {
        **kept, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "PIP_CONSTRAINT": str(home / "constraints.txt"),
        "PIP_CACHE_DIR": str(CACHE), "HERMES_QUIET": "1", "NO_COLOR": "1", "TERM": "dumb", "HERMES_YOLO_MODE": "1", "HERMES_ACCEPT_HOOKS": "1",
    }  # fmt: skip
    told = []
    script = "".join(f"{line}\necho \"== $?\"\n" for line in lines)
    done = subprocess.run(
        ["bash", "-c", script], cwd=home, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    outputs = re.split(r"^== (\d+)$\n?", done.stdout, flags=re.MULTILINE)
    for line, output, code in zip(lines, outputs[::2], outputs[1::2], strict=False):
        warned = line.startswith("memoryd doctor") and code == "3"
        assert code == "0" or warned, (line, code, output)
        told.append((line, output))
    assert len(told) == len(lines), done.stdout
    return told
