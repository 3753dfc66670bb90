"""``memoryd backends``, ``replay``, ``export`` and ``import`` as a person and a program see them."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SHELF = Path(__file__).parents[1] / "crash/shelf.py"


@pytest.fixture
def shelf(private_home: Path) -> Path:
    """The file that the plugin ``shelf`` of the user's writes."""
    (private_home / "plugins").mkdir(parents=True)
    shutil.copy(SHELF, private_home / "plugins/shelf.py")
    path = private_home / "shelf.jsonl"
    (private_home / "memoryd.toml").write_text(f'[backends.shelf]\npath = "{path}"\n', "utf-8")
    return path


# -- backends ----------------------------------------------------------------------------------------------------------------


def test_every_backend_is_listed(memoryd: Run, shelf: Path, private_home: Path) -> None:
    (private_home / "plugins/local.py").write_text("def create(context):\n    raise SystemExit\n", "utf-8")
    (private_home / "plugins/torn.py").write_text("import nowhere\n", "utf-8")
    answer = memoryd("backends", "--json").json
    found = {(one["name"], one["origin"]): one for one in answer["backends"]}
    assert answer["count"] == len(found)
    local = found["local", "bundled"]
    assert (local["available"], local["role"], local["label"], local["shadowed"]) == (True, "primary", "local (SQLite)", False)
    shadowed = found["local", "user"]
    assert (shadowed["available"], shadowed["shadowed"]) == (False, True)
    assert "memoryd_local" in shadowed["reason"]
    assert found["shelf", "user"]["available"]
    torn = found["torn", "user"]
    assert not torn["available"]
    assert "nowhere" in torn["reason"]
    assert found["null", "bundled"]["role"] == ""
    assert not found["honcho", "bundled"]["available"]
    assert not (private_home / "profiles").exists(), "it makes nothing"
    text = memoryd("backends").out
    assert "local\tprimary\tbundled\tyes\tlocal (SQLite)" in text
    assert "local\t\tuser\tshadowed" in text


def test_roles_and_a_refused_primary_are_shown(memoryd: Run, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_BACKEND", "shelf")
    monkeypatch.setenv("HERMES_MEMORY_BACKEND", "local")
    answer = memoryd("backends", "--json").json
    assert {one["name"]: one["role"] for one in answer["backends"] if one["role"]} == {"shelf": "primary", "local": "history"}
    (warning,) = answer["warnings"]
    assert '"shelf"' in warning
    assert '"local"' in warning
    assert "is refused" in memoryd("status").out
    assert warning in memoryd("config", "check").out


def test_a_configured_one_that_is_not_there_is_shown(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_MIRRORS", "gone")
    (gone,) = [one for one in memoryd("backends", "--json").json["backends"] if one["name"] == "gone"]
    assert (gone["role"], gone["available"], gone["reason"]) == ("mirror", False, "is configured and not installed")


def test_auto_is_no_error_without_a_cloud(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_BACKEND", "auto")
    assert memoryd("config", "check").code == 0
    assert "auto: local is the primary" in memoryd("status").out
    roles = {one["name"]: one["role"] for one in memoryd("backends", "--json").json["backends"]}
    assert (roles["honcho"], roles["local"]) == ("primary if healthy", "primary otherwise")


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MEMORYD_BACKEND": "honcho"}, "HONCHO_URL"),
        ({"MEMORYD_BACKEND": "null", "MEMORYD_MIRRORS": "local"}, "mirrors: must be empty"),
    ],
)
def test_a_wrong_choice_is_one_line_and_64(memoryd: Run, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], words: str) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    done = memoryd("store", "city", "Oslo")
    assert done.code == 64
    assert words in done.err


# -- replay ------------------------------------------------------------------------------------------------------------------


def test_a_replay(memoryd: Run, shelf: Path) -> None:
    memoryd("turn", stdin="".join(json.dumps({"user": city, "assistant": "ok"}) + "\n" for city in ("Oslo", "Bergen", "Turku")))
    assert memoryd("replay", "--to", "shelf", "--dry-run").out == "would send 3 events to shelf, from 1 to 3\n"
    assert not shelf.exists()
    assert memoryd("replay", "--to", "Shelf").out == "sent 3 events to shelf, up to 3\n"
    done = memoryd("replay", "--to", "shelf", "--from-seq", "2", "--json")
    assert done.json == {"to": "shelf", "first": 2, "last": 3, "sent": 2, "refused": 0, "dry_run": False}
    assert len(shelf.read_text("utf-8").splitlines()) == 5
    for wrong in (["--to", "nowhere"], ["--to", "shelf", "--from-seq", "0"]):
        assert memoryd("replay", *wrong).code == 64
    assert memoryd("replay", "--to", "shelf", "--from-seq", "9").code == 1


# -- export and import -------------------------------------------------------------------------------------------------------


def test_out_and_in_again(memoryd: Run, tmp_path: Path) -> None:
    memoryd("turn", "--session", "s1", stdin='{"user": "I live in Oslo", "assistant": "ok"}\n{"user": "caf\\u00e9 \\udc00", "assistant": "ok"}')
    memoryd("store", "city", "Oslo")
    memoryd("store", "city", "Turku", "--user", "bob")
    file = tmp_path / "all of it.jsonl"
    done = memoryd("export", str(file), "--all-users", "--json").json
    assert done == {"file": str(file), "events": 4, "user": None, "unreadable": 0}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one = memoryd("export")
    assert (one.code, one.lines[0], len(one.lines)) == (0, {"format": "memoryd-export", "version": 1, "user": "default"}, 5)
    other = ("--home", str(tmp_path / "other"))
    assert memoryd("import", str(file), *other).code == 1
    assert memoryd("import", str(file), *other, "--all-users").out == "imported 4 of 4 events\n"
    assert memoryd("import", *other, stdin=one.stdout).out == "imported 0 of 3 events; the others were here\n"
    assert memoryd("export", *other).stdout == one.stdout
    assert memoryd("get", "city", *other, "--user", "bob").out == "Turku\n"


def test_a_wrong_line_is_named(memoryd: Run, private_home: Path) -> None:
    memoryd("store", "city", "Oslo")
    good = memoryd("export").stdout.splitlines(keepends=True)
    done = memoryd("import", "--json", stdin=b"".join([good[0], b"oops\n", good[2]]))
    assert done.code == 1
    assert done.err == "memoryd: line 2: is not JSON; nothing was imported\n"
    assert done.json["error"]["field"] == "line 2"
    assert memoryd("import", "/nowhere.jsonl").err.startswith("memoryd: /nowhere.jsonl: ")
    assert "nobody" not in memoryd("export", "--user", "nobody").out.replace('"user": "nobody"', "")
    left = [path for path in private_home.rglob("*") if path.suffix == ".jsonl"]
    assert left == [], "no copy of standard input is left"


def test_a_refused_target_leaves_what_was_there(memoryd: Run, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    file.write_text("kept", "utf-8")
    assert memoryd("export", str(tmp_path / "no" / "such.jsonl")).code == 1
    assert memoryd("export", str(tmp_path)).code == 1
    assert file.read_text("utf-8") == "kept"
    assert json.loads(memoryd("export", "/dev/stdout").stdout.splitlines()[-2]) == {"end": 0}


def test_the_page_about_moving_runs(memoryd: Run, shelf: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/howto/move-a-memory.md").read_text("utf-8")
    script = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)).replace("NAME", "shelf")
    memoryd("store", "city", "Oslo", "--user", "ada")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "imported 1 of 1 events" in done.stdout
