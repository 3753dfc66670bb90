"""Exit codes, where options may stand, and what a wrong command line says."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ("nope",), ("recall",), ("recall", "x", "--limit", "-1"), ("recall", "x", "--limit", "many"), ("get",), ("get", "a", "b"),
        ("store",), ("checkpoint", "nope"), ("checkpoint", "restore"), ("gate", "release"), ("--nope",), ("recall", "x", "--nope"),
        ("completion", "csh"), ("forget",), ("store", "k", "v", "--metadata", "{"), ("store", "k", "v", "--metadata", "[]"),
        ("recall", "x", "--wait", "-1"), ("recall", "x", "--wait", "nan"), ("turn", "--wait", "inf"), ("recall", "x", "--as-of", "soon"),
        ("forget", "--since", "x"), ("forget", "--until", "10000-01-01"), ("edit", "00" * 16, "a", "--user-text", "b"), ("checkpoint", "restore", "x", "--attempt", "0"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_exits_64(memoryd: Run, arguments: tuple[str, ...], private_home: Path) -> None:
    done = memoryd(*arguments)
    assert done.code == 64
    assert done.err.startswith("memoryd: ")
    assert done.stdout == b""
    assert not private_home.exists(), "nothing was written"


@pytest.mark.parametrize("arguments", [(), ("checkpoint",), ("gate",), ("config",)])
def test_a_command_that_lacks_a_command_shows_help(memoryd: Run, arguments: tuple[str, ...]) -> None:
    done = memoryd(*arguments)
    assert done.code == 64
    assert "Commands:" in done.err


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("recall", "--help"), ("checkpoint", "create", "--help"), ("--version",)])
def test_help_exits_0(memoryd: Run, arguments: tuple[str, ...]) -> None:
    done = memoryd(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "--profile", "p", "--home", "HOME", "config", "path"), ("config", "path", "--json", "--profile", "p", "--home", "HOME"),
        ("--home", "HOME", "config", "--profile", "p", "path", "--json"),
        ("--profile", "q", "config", "--home", "HOME", "path", "--json", "--profile", "p"),
    ],
)  # fmt: skip
def test_common_options_stand_anywhere_and_the_later_wins(memoryd: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    home = str(tmp_path / "h")
    found = memoryd(*(home if word == "HOME" else word for word in arguments)).json
    expected = memoryd("config", "path", "--json", "--profile", "p", "--home", home).json
    assert found == expected
    assert found["home"] == home


def test_a_wrong_configuration_exits_64_everywhere(memoryd: Run, private_home: Path) -> None:
    private_home.mkdir()
    (private_home / "memoryd.toml").write_text("[gate]\nmod = 'off'")
    for arguments in (("config", "check"), ("recall", "x"), ("store", "k", "v"), ("checkpoint", "create"), ("status",), ("gate", "status")):
        done = memoryd(*arguments)
        assert done.code == 64, arguments
        assert done.err == f"memoryd: {private_home / 'memoryd.toml'}: gate.mod: unknown key; did you mean gate.mode?\n"
    error = memoryd("--json", "config", "check").json["error"]
    assert (error["type"], error["retryable"]) == ("ConfigError", False)


def test_an_unknown_backend_is_a_configuration_error(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_BACKEND", "nowhere")
    for arguments in (("config", "check"), ("recall", "x")):
        done = memoryd(*arguments)
        assert done.code == 64
        assert '"nowhere" is not installed' in done.err


def test_a_home_that_is_no_directory(memoryd: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for home, why in ((file, "what is there is no"), (file / "below", "Not a directory"), (tmp_path / "nowhere", "what is there is no")):
        done = memoryd("--home", str(home), "--json", "store", "k", "v")
        assert done.code == 1
        assert done.err.startswith(f"memoryd: {home}: the home cannot be made there ({why}")
        assert "set MEMORYD_HOME or --home" in done.json["error"]["message"]
        for other in (("gate", "status"), ("pause",)):
            assert "the home cannot be made there" in memoryd("--home", str(home), *other).err


def test_a_variable_that_means_nothing_is_a_warning(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_GAET", "off")
    said = "environment: MEMORYD_GAET: unknown variable, it changes nothing; did you mean MEMORYD_GATE?"
    done = memoryd("config", "check")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"warning: {said}")
    assert memoryd("config", "check", "--json").json["warnings"] == [said]
    doctor = memoryd("doctor", "--json")
    [check] = [check for check in doctor.json["checks"] if check["state"] != "ok"]
    assert (doctor.code, check["name"], check["said"]) == (3, "configuration", said)
    assert check["remedy"]


def test_the_foot_of_the_help_names_what_helps(memoryd: Run) -> None:
    foot = " ".join(memoryd("--help").out.split())
    assert "'memoryd COMMAND --help'" in foot
    assert "'memoryd doctor'" in foot
    assert "docs/" not in foot


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m memoryd config show --default | head -c 10 > /dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", "141")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["turn --session s", "store k v", "status --json", "checkpoint create", "get nothing --json"])
def test_a_closed_stream_is_an_empty_one(tmp_path: Path, command: str, closed: str) -> None:
    errors = tmp_path / "errors"
    script = f"{sys.executable} -m memoryd {command} {closed}"
    code = {"checkpoint create": 2, "get nothing --json": 1}.get(command, 0)
    with open(errors, "wb") as stream:
        assert subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stderr=stream, check=False).returncode == code
    assert "Traceback" not in errors.read_text("utf-8")


def test_ctrl_c_exits_130(private_home: Path) -> None:
    command = [sys.executable, "-m", "memoryd", "turn"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"user": "a", "assistant": "b"}\n')
    process.stdin.flush()
    assert b"journaled" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, b"")


def test_tables_are_drawn_on_a_terminal_only(memoryd: Run) -> None:
    assert "backend\t" in memoryd("config", "show").out
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "memoryd", "config", "show"], stdout=follower, env={**os.environ, "COLUMNS": "200"})
    os.close(follower)
    drawn = b""
    while chunk := _read(leader):
        drawn += chunk
    assert process.wait(timeout=30) == 0
    assert b"\t" not in drawn
    assert b"source" in drawn, "a table for people has headers"


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # what Linux answers when the other side of a terminal is gone
        return b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(memoryd: Run, shell: str) -> None:
    found = memoryd("completion", shell, "--json").json
    assert (found["shell"], found["script"] + "\n") == (shell, memoryd("completion", shell).out)
    assert "_MEMORYD_COMPLETE" in memoryd("completion", shell).out


def test_completion_answers(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MEMORYD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "memoryd check")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert memoryd().out == "plain,checkpoint\n"


def test_version(memoryd: Run) -> None:
    found = memoryd("version", "--json").json
    assert set(found) == {"memoryd", "python", "platform", "apsw", "trio"}
    assert memoryd("version").out.startswith(f"memoryd {found['memoryd']}\n")


def test_config_show(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_GATE", "warn")
    found = memoryd("config", "show", "--json").json["config"]
    assert found["gate.mode"] == {"value": "warn", "source": "MEMORYD_GATE"}
    assert found["backend"] == {"value": "local", "source": "default"}
    assert memoryd("config", "show", "--default").out == (Path(__file__).parents[2] / "config/memoryd.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("store", "", "v"), "key"), (("store", "k" * 501, "v"), "key"), (("store", "k", "v", "--user", ""), "user"),
        (("store", "k", "v", "--profile", "p" * 501), "profile"), (("store", "k", "v", "--type", ""), "metadata.type"),
        (("store", "k", "v", "--metadata", '{"a": NaN}'), "metadata.a"), (("store", "k", "v", "--metadata", '{"a":' * 99 + "1" + "}" * 99), "metadata"),
        (("get", ""), "key"), (("history", ""), "key"), (("edit", "", "x"), "id"), (("forget", "zz", "--yes"), "id"), (("forget", "00" * 15, "--yes"), "id"),
        (("recall", "x", "--session", ""), "session"), (("gate", "release", ""), "session"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_stored_names_its_field(memoryd: Run, arguments: tuple[str, ...], field: str) -> None:
    done = memoryd(*arguments, "--json")
    assert done.code == 1
    assert done.json["error"]["field"] == field


@pytest.mark.parametrize("text", ["\udcff", "a b\n", "--", "%", "🙂", "x" * 100_000])
def test_any_text_in_an_argument(memoryd: Run, text: str) -> None:
    assert memoryd("store", "--", "k", text).code == 0
    assert memoryd("get", "k", "--json").json["value"] == text
