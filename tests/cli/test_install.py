"""``memoryd install`` and ``uninstall`` as a person uses them: settings of others, dry runs, a second time, back again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.errors import ConfigError
from memoryd.hosts import check_python, host_names, make_place
from tests.cli.conftest import Run

CLAUDE = """\
// what I like
{
  "model": "opus", // the big one
  "permissions": { "allow": ["Bash(ls:*)"] },
  /* hooks of other people */
  "hooks": {
    "PreCompact": [
      { "matcher": "auto", "hooks": [{ "type": "command", "command": "echo 'é' >> ~/log" }] } // keep
    ],
    "Stop": [ {"hooks": [{"type": "command", "command": "say done", "timeout": 3}]} ],
    "Notification": []
  },
  "cleanupPeriodDays": 90
}
"""
CODEX = """\
# mine
model = "gpt"   # the big one

[[hooks.PreCompact]]
[[hooks.PreCompact.hooks]]
type = "command"
command = 'echo "é"'

[projects."/w/foo"]
trust_level = "trusted"
"""
GEMINI = '{\n\t"theme": "dark", // at night\n\t"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "x"}]}]},\n}\n'
FILES = {"claude-code": (".claude/settings.json", CLAUDE), "codex": (".codex/config.toml", CODEX), "gemini": (".gemini/settings.json", GEMINI)}


@pytest.fixture
def home(private_home: Path) -> Path:
    return private_home.parent


def settings(home: Path, host: str) -> Path:
    """The host's settings file, full of what other people wrote."""
    name, text = FILES[host]
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below ``root`` with its mode and content; directories too."""
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("host", FILES)
def test_installing_twice_changes_once_and_uninstalling_restores(memoryd: Run, home: Path, host: str) -> None:
    path = settings(home, host)
    before = path.read_bytes()
    first = memoryd("install", host, "--json").json
    installed = tree(home)
    assert [change["action"] for change in first["changes"]] == ["create", "edit"]
    assert Path(first["changes"][1]["backup"]).read_bytes() == before
    assert memoryd("install", host, "--json").json["changes"] == []
    assert tree(home) == installed, "a second time changes nothing"
    rest = iter(path.read_text())
    assert all(char in rest for char in before.decode()), "what others wrote is there, in its order"
    memoryd("uninstall", host)
    assert path.read_bytes() == before
    assert memoryd("uninstall", host, "--json").json["changes"] == []


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_what_was_edited_meanwhile_is_kept(memoryd: Run, home: Path, host: str) -> None:
    path = settings(home, host)
    memoryd("install", host)
    text = path.read_text()
    path.write_text(text.replace("big one", "small one").replace("at night", "always"))
    memoryd("uninstall", host)
    assert path.read_text().split() == FILES[host][1].replace("big one", "small one").replace("at night", "always").split()


def test_settings_that_were_put_back_by_hand_are_uninstalled_again(memoryd: Run, home: Path) -> None:
    path = settings(home, "claude-code")
    memoryd("install", "claude-code")
    installed = path.read_bytes()
    memoryd("uninstall", "claude-code")
    path.write_bytes(installed)
    memoryd("uninstall", "claude-code")
    assert path.read_text() == CLAUDE


def test_a_dry_run_changes_nothing(memoryd: Run, home: Path) -> None:
    settings(home, "claude-code")
    (home / ".codex").mkdir()
    (home / ".cursor").mkdir()
    before = tree(home)
    shown = memoryd("install", "all", "--dry-run")
    assert tree(home) == before
    assert "claude-code: would edit" in shown.out
    assert "+    \"SessionEnd\": [" in shown.out, "it shows what would change inside"
    assert "codex: would create" in shown.out
    memoryd("install", "all")
    installed = tree(home)
    assert "would remove" in memoryd("uninstall", "all", "--dry-run").out
    assert tree(home) == installed


def test_all_takes_what_is_on_this_machine(memoryd: Run, home: Path) -> None:
    settings(home, "claude-code")
    settings(home, "gemini")
    names = [shown["host"] for shown in memoryd("install", "all", "--json").json]
    assert names == ["claude-code", "gemini", "mcp"], "Gemini CLI is an MCP client too"
    memoryd("uninstall", "all")
    for host in ("claude-code", "gemini"):
        assert (home / FILES[host][0]).read_text() == FILES[host][1]


def test_one_host_that_fails_does_not_stop_the_others(memoryd: Run, home: Path) -> None:
    settings(home, "claude-code").write_text("{ no json")
    settings(home, "gemini")
    done = memoryd("install", "all")
    assert done.code == 1
    assert f"memoryd: claude-code: {home}/.claude/settings.json: line 1: is not valid JSON" in done.err
    assert "gemini: edit" in done.out
    assert (home / ".claude/settings.json").read_text() == "{ no json"


def test_nothing_to_install_is_said(memoryd: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert memoryd("install", "all").out == "nothing to install: no agent program was found\n"


def test_what_an_install_made_goes_again(memoryd: Run, home: Path) -> None:
    memoryd("install", "claude-code")
    assert (home / ".claude").stat().st_mode & 0o777 == 0o700
    assert (home / ".claude/settings.json").stat().st_mode & 0o777 == 0o600
    memoryd("uninstall", "claude-code")
    assert not (home / ".claude").exists()
    assert [path.name for path in (home / "memoryd/bin").iterdir()] == ["memoryd_hook.py"], "the gate of some other project may run it"


def test_a_folder_that_was_there_stays(memoryd: Run, home: Path) -> None:
    (home / ".claude").mkdir()
    memoryd("install", "claude-code")
    memoryd("uninstall", "claude-code")
    assert list((home / ".claude").iterdir()) == []


def test_a_link_is_followed_and_modes_stay(memoryd: Run, home: Path) -> None:
    path = settings(home, "claude-code")
    real = home / "dotfiles.json"
    path.rename(real)
    real.chmod(0o640)
    path.symlink_to(real)
    memoryd("install", "claude-code")
    assert path.is_symlink()
    assert "memoryd_hook.py" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_the_first_install_says_what_is_recorded_and_where(memoryd: Run, home: Path, private_home: Path) -> None:
    said = memoryd("install", "claude-code").out
    assert "is recorded" in said
    assert str(private_home / "profiles") in said
    assert "nothing leaves this machine" in said
    assert "memoryd pause" in said
    assert "gated" in said
    assert "is recorded" not in memoryd("install", "claude-code").out


def test_an_unknown_host_or_scope_says_which_there_are(memoryd: Run, private_home: Path) -> None:
    done = memoryd("install", "emacs")
    assert done.code == 64
    assert done.err == f'memoryd: host: "emacs" is unknown; there are: {", ".join(host_names())}\n'
    done = memoryd("install", "codex", "--scope", "galaxy")
    assert done.code == 64
    assert "there are: user" in done.err
    assert not private_home.exists(), "nothing was written"


def test_a_project_is_installed_for_alone(memoryd: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memoryd("install", "claude-code", "--scope", "project")
    assert "memoryd_hook.py" in (tmp_path / ".claude/settings.local.json").read_text()
    assert not (home / ".claude").exists()
    memoryd("uninstall", "claude-code", "--scope", "project")
    assert list(tmp_path.iterdir()) == []


def test_purge_asks_first(memoryd: Run, home: Path) -> None:
    memoryd("install", "claude-code")
    assert memoryd("uninstall", "claude-code", "--purge", stdin="n\n").code != 0
    assert (home / ".claude/settings.json").exists()


def test_a_python_without_memoryd_is_refused(tmp_path: Path) -> None:
    check_python(sys.executable)
    for program in (os.path.realpath("/bin/false"), str(tmp_path / "gone")):
        with pytest.raises(ConfigError, match="cannot import memoryd"):
            check_python(program)


def test_a_python_of_a_single_run_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "uv/archive-v0/Xy12/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    with pytest.raises(ConfigError, match="uv tool install memoryd"):
        check_python(str(python))


def test_what_cannot_be_written_is_named(memoryd: Run, home: Path) -> None:
    (home / ".claude").write_text("not a folder")
    done = memoryd("install", "claude-code")
    assert done.code == 64
    assert done.err.startswith(f"memoryd: {home}/.claude")
    assert (home / ".claude").read_text() == "not a folder"
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        make_place(os.fsdecode(b"/tmp/\xff"))


def test_it_works_where_memoryd_is_only_an_argument(memoryd: Run, home: Path, tmp_path: Path) -> None:
    """A home given by --home, in a path that no shell likes."""
    odd = tmp_path / "My Döcs & 'x' $HOME (1)"
    memoryd("--home", str(odd), "install", "claude-code")
    found = json.loads((home / ".claude/settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    done = subprocess.run(["sh", "-c", found], input=b"{}", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (odd / "bin/memoryd_hook.py").exists()
