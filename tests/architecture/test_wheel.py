"""The wheel holds what an installed memoryd needs, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def packages() -> set[Path]:
    return {path.parent for path in (ROOT / "adapters").glob("*/__init__.py")} | {ROOT / "memoryd"}


def test_the_wheel_is_the_packages(wheel: Path) -> None:
    built = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    here = {
        str(path.relative_to(package.parent))
        for package in packages()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert built == here
    assert {"memoryd/py.typed", "memoryd/cli/transcript.jsonl"} <= built
    assert any(name.endswith(".sql") for name in built)


def test_every_package_is_listed_and_typed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    listed = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert listed == {str(package.relative_to(ROOT)) for package in packages()}
    assert set(project["tool"]["importlinter"]["root_packages"]) == {package.name for package in packages()}
    for package in packages():
        assert (package / "py.typed").exists(), f"{package.name} has no py.typed"
    assert not (ROOT / "adapters/__init__.py").exists()


def test_an_installed_wheel_works(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    environ = {**os.environ, "PYTHONPATH": str(site)}
    store = [sys.executable, "-m", "memoryd", "store", "city", "Oslo"]
    get = [sys.executable, "-m", "memoryd", "get", "city"]
    assert subprocess.run(store, cwd=tmp_path, env=environ, capture_output=True, check=False).returncode == 0
    done = subprocess.run(get, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("Oslo\n", 0)
    where = [sys.executable, "-c", "import memoryd; print(memoryd.__file__)"]
    assert subprocess.run(where, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True).stdout.startswith(str(site))


def test_an_installed_wheel_installs_itself_into_a_host(wheel: Path, tmp_path: Path, private_home: Path) -> None:
    """Into an environment of its own, where only the other packages are those of this one: the hook program comes out of the wheel."""
    venv.create(tmp_path / "own", with_pip=False)
    python = tmp_path / "own/bin/python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "own")}))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    command = [python, "-I", "-m", "memoryd", "install", "claude-code", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (private_home / "bin/memoryd_hook.py").read_bytes() == (site / "memoryd/hook.py").read_bytes()
    settings = json.loads((private_home.parent / ".claude/settings.json").read_text())
    gate = settings["hooks"]["PreCompact"][0]["hooks"][0]["command"]
    assert f"P={python}" in gate
    payload = b'{"session_id": "s-1", "transcript_path": null, "cwd": "/", "trigger": "auto"}'
    assert subprocess.run(["sh", "-c", gate], input=payload, capture_output=True, check=False).returncode == 0
    receipts = [path.read_text() for path in private_home.glob("profiles/*/gate.receipts.jsonl")]
    assert "nothing-to-archive" in receipts[0]
