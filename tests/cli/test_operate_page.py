"""The commands of docs/howto/operate.md and docs/howto/find-out-what-is-wrong.md do what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lines_of(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/howto" / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def environ() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("page", "seen"), [("operate.md", ["journaled", "\nok\tmemory\t", "append"]), ("find-out-what-is-wrong.md", ["ok\tsqlite\t"])]
)
def test_the_commands_run(page: str, seen: list[str], tmp_path: Path, private_home: Path) -> None:
    (private_home.parent / "run").mkdir(mode=0o700)
    commands = [line for line in lines_of(page) if "serve" not in line]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)], capture_output=True, text=True, cwd=tmp_path, env=environ(), check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for text in seen:
        assert text in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_daemon_answers_a_scraper(private_home: Path) -> None:
    (private_home.parent / "run").mkdir(mode=0o700)
    [line] = [line for line in lines_of("operate.md") if "serve" in line]
    command = line.replace("9464", "0").split()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ()) as daemon:
        try:
            assert daemon.stdout is not None
            port = daemon.stdout.readline().rpartition("metrics on port ")[2].strip()
            subprocess.run(["memoryd", "store", "city", "Oslo"], check=True, capture_output=True, env=environ())
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                assert 'memoryd_stage_calls_total{profile="default",stage="append"} 1.0' in answer.read().decode()
        finally:
            daemon.terminate()
        daemon.wait(60)


def test_every_check_of_doctor_is_in_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/operate.md").read_text("utf-8")
    for path in (ROOT / "memoryd/doctor").glob("*.py"):
        for name in re.findall(r'(?:fine|doubtful|broken)\(f?"([a-z -]+)', path.read_text("utf-8")):
            assert f"`{name.split()[0]}" in page, f"{path.name}: {name}"
