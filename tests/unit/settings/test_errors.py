"""A wrong configuration is one line: the place, the key, what was expected, the nearest known key.  Never a value."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from memoryd.core import Config
from memoryd.errors import ConfigError
from memoryd.settings import load_config, unknown_variables

SECRET = "sk-very-secret-7f3a"


def problem(home: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(home, environ=environ)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[gate]\nmod = 'warn'", "gate.mod: unknown key; did you mean gate.mode?"),
        ("bakend = 'local'", "bakend: unknown key; did you mean backend?"),
        ("[gates]\nmode = 'warn'", "gates.mode: unknown key; did you mean gate.mode?"),
        ("[gates]", "gates: unknown key; did you mean gate.mode?"),
        ("qqqq = 1", "qqqq: unknown key; `memoryd config show` lists the keys"),
        ('"a\\nb" = 1', "a?b: unknown key; `memoryd config show` lists the keys"),
        ("gate = 'off'", "gate: expected a table [gate] with mode, fallback_dir, quota_bytes"),
        ("[gate]\nmode = 'of'", 'gate.mode: expected one of "block", "warn", "off"; this text is not'),
        ("[gate]\nmode = 5", 'gate.mode: expected one of "block", "warn", "off", got the number 5'),
        ("[gate.mode]\nx = 1", 'gate.mode: expected one of "block", "warn", "off", got a table'),
        ("[log]\nmax_bytes = -1", "log.max_bytes: expected a whole number of at least 0, got the number -1"),
        ("[log]\nmax_bytes = 1.5", "log.max_bytes: expected a whole number of at least 0, got the number 1.5"),
        ("[log]\nmax_bytes = '5'", "log.max_bytes: expected a whole number of at least 0; this text is not"),
        ("[log]\nmax_bytes = true", "log.max_bytes: expected a whole number of at least 0, got true"),
        ("[log]\nmax_bytes = 9e99", "log.max_bytes: expected a whole number of at least 0, got another number"),
        ("[log]\nmax_bytes = 2026-01-01", "log.max_bytes: expected a whole number of at least 0, got a date"),
        ("[deadlines]\nrecall = nan", "deadlines.recall: expected a number of seconds above 0, got another number"),
        ("[deadlines]\nrecall = 0", "deadlines.recall: expected a number of seconds above 0, got the number 0"),
        ("[capture]\nprivate = 1", "capture.private: expected true or false, got the number 1"),
        ("mirrors = 'local'", "mirrors: expected a list of names of backends; this text is not"),
        ("mirrors = [1]", "mirrors: expected a list of names of backends, got a list"),
        ("backend = ''", "backend: expected the name of a backend, got an empty text"),
        ("backend = 'null'\nmirrors = ['local']", 'mirrors: must be empty beside backend = "null", which turns capture off'),
        ("mirrors = ['local']", 'mirrors: "local" is the primary backend already'),
        ("backends = 5", "backends: expected tables [backends.NAME]"),
        ("[backends]\nx = 5", "backends.x: expected a table [backends.x]"),
    ],
)
def test_a_wrong_key_or_value(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "memoryd.toml"
    file.write_text(text, "utf-8")
    assert problem(tmp_path) == f"{file}: {expected}"


@pytest.mark.parametrize(
    "text",
    [
        f"api_key = '{SECRET}'", f"token = '{SECRET}'", f"url = 'https://user:{SECRET}@host/'",
        f"[backends.x.deep]\nauth_token = '{SECRET}'", f"list = [{{password = '{SECRET}'}}]", f"Api-Key = '{SECRET}'",
    ],
)  # fmt: skip
def test_a_secret_is_refused_and_not_echoed(tmp_path: Path, text: str) -> None:
    (tmp_path / "memoryd.toml").write_text(f"[backends.x]\n{text}", "utf-8")
    assert "a secret does not belong into the configuration" in problem(tmp_path)


def test_the_names_of_secrets_are_welcome(tmp_path: Path) -> None:
    (tmp_path / "memoryd.toml").write_text("[backends.x]\napi_key_env = 'X'\ntoken_file = '/run/t'\nkeys = 3", "utf-8")
    assert load_config(tmp_path, environ={}).config.backends["x"]["api_key_env"] == "X"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a = \xff", "is not UTF-8 text (byte 4)"),
        (b"a = ", "is not valid TOML: Invalid value (at end of document)"),
        (b"x = " + b"[" * 5000, "is not valid TOML: nested too deeply"),
        (b"#" * (2 << 20), "is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "memoryd.toml").write_bytes(data)
    assert problem(tmp_path) == f"{tmp_path / 'memoryd.toml'}: {expected}"


def test_what_is_no_file_at_all(tmp_path: Path) -> None:
    file = tmp_path / "memoryd.toml"
    file.mkdir()
    assert problem(tmp_path) == f"{file}: expected a file"
    file.rmdir()
    os.mkfifo(file)
    assert problem(tmp_path) == f"{file}: expected a file"
    file.unlink()
    file.symlink_to(file)
    assert problem(tmp_path).startswith(f"{file}: cannot be read: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    file = tmp_path / "memoryd.toml"
    file.write_text("")
    file.chmod(0)
    assert problem(tmp_path) == f"{file}: cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MEMORYD_GATE", SECRET, 'expected one of "block", "warn", "off"'),
        ("MEMORYD_LOG_MAX_BYTES", "many", "expected a whole number of at least 0"),
        ("MEMORYD_DEADLINES_RECALL", "inf", "expected a number of seconds above 0"),
        ("MEMORYD_CAPTURE_PRIVATE", "perhaps", "expected true or false"),
        ("MEMORYD_GATE_MOD", "warn", "unknown key; did you mean MEMORYD_GATE_MODE?"),
    ],
)
def test_a_wrong_variable(tmp_path: Path, name: str, value: str, expected: str) -> None:
    assert problem(tmp_path, **{name: value}) == f"environment: {name}: {expected}"


@pytest.mark.parametrize("overrides", [{"gate": {"mode": "of"}}, {"gate.mode": 1}, {"nope": 1}, {5: 1}, [1]])
def test_wrong_arguments(tmp_path: Path, overrides: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="^arguments: "):
        load_config(tmp_path, overrides=overrides, environ={})


def test_a_variable_that_means_nothing_is_named_with_the_nearest_one() -> None:
    config = load_config(overrides={"backends": {"shelf": {"key_env": "MEMORYD_SHELF_KEY"}}}, environ={"HOME": "/nowhere"}).config
    environ = {"MEMORYD_GAET": "off", "MEMORYD_SHELF_KEY": "x", "MEMORYD_HOME": "/h", "MEMORYD_GATE": "off", "MEMORYD_XYZ": "1"}
    first, second = unknown_variables(config, environ)
    assert first == "environment: MEMORYD_GAET: unknown variable, it changes nothing; did you mean MEMORYD_GATE?"
    assert second == "environment: MEMORYD_XYZ: unknown variable, it changes nothing"


def test_every_variable_that_the_program_reads_is_known() -> None:
    root = Path(__file__).parents[3]
    folders = ("memoryd", "adapters", "docs", "tests/benchmarks", "tests/adapters/hermes")
    files = [path for folder in folders for path in (root / folder).rglob("*") if path.suffix in (".py", ".md")]
    read = {name for path in files for name in re.findall(r"\bMEMORYD(?:_[A-Z]+)+\b(?!_)", path.read_text("utf-8"))}
    assert {"MEMORYD_HOME", "MEMORYD_BENCH_ROWS", "MEMORYD_HOSTS"} <= read
    prefixes = {"MEMORYD_CAPTURE"}  # of names that are settings
    assert unknown_variables(Config(), dict.fromkeys(read - prefixes, "")) == ()
