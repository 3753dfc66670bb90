"""No test sees the user's home, and none leaves anything behind.  Long ones run when they are asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

settings.register_profile("ci", derandomize=True)  # a machine that judges a change gives the same answer twice
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked ``soak`` or ``hosts``, unless ``-m`` says what to run."""
    if config.getoption("-m"):
        return
    long = [item for item in items if item.get_closest_marker("soak") or item.get_closest_marker("hosts")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


# hundreds of child processes: let them find compiled modules
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# a shell starts what it puts in the background with interruptions ignored: tests that send one would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def compiled_rules(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The detector's rules are compiled once for all tests and their child processes: it takes seconds."""
    os.environ["KF_RULE_CACHE_DIR"] = str(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


_OURS = ("MEMORYD_", "HERMES_", "HONCHO_")


@pytest.fixture(autouse=True)
def private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, XDG_* and MEMORYD_HOME in a directory of this test's own; no other variable of ours is set.  Gives MEMORYD_HOME."""
    root = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    for name, folder in _FOLDERS.items():
        monkeypatch.setenv(name, str(root / folder))
    return root / _FOLDERS["MEMORYD_HOME"]


_FOLDERS = {
    "HOME": ".",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_RUNTIME_DIR": "run",
    "MEMORYD_HOME": "memoryd",
}
