"""The samples for service managers are what the program and its documentation say."""

from __future__ import annotations

import configparser
import plistlib
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from memoryd.cli._group import COMMANDS
from memoryd.core import DaemonConfig
from memoryd.settings import resolve_socket

CONFIG = Path(__file__).parents[2] / "config"


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((CONFIG / "systemd" / name).read_text("utf-8"))
    return parser


def test_the_socket_unit_listens_where_clients_look() -> None:
    found = unit("memoryd.socket")["Socket"]
    assert found["ListenStream"].replace("%t", "/run/user/7") == str(resolve_socket(environ={"XDG_RUNTIME_DIR": "/run/user/7"}))
    assert (found["SocketMode"], found["DirectoryMode"]) == ("0600", "0700")


def test_the_service_starts_the_daemon_and_waits_for_its_drain() -> None:
    found = unit("memoryd.service")["Service"]
    assert found["Type"] == "notify"
    assert shlex.split(found["ExecStart"])[1:] == ["serve"] and "serve" in COMMANDS
    assert float(found["TimeoutStopSec"]) > DaemonConfig().drain + 10
    assert float(found["WatchdogSec"]) >= 10


def test_the_agent_of_launchd_starts_the_daemon() -> None:
    found = plistlib.loads((CONFIG / "launchd/org.memoryd.daemon.plist").read_bytes())
    assert found["ProgramArguments"][1:] == ["serve"]
    assert found["ExitTimeOut"] > DaemonConfig().drain + 10
    assert found["Umask"] == 0o077
    assert found["Label"] == "org.memoryd.daemon"


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """Where systemd is installed, with a program in the place that the sample names."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    for name in ("memoryd.service", "memoryd.socket"):
        text = (CONFIG / "systemd" / name).read_text("utf-8").replace("%h/.local/bin/memoryd", "/bin/true")
        (tmp_path / name).write_text(text)
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [analyze, "--user", "verify", tmp_path / "memoryd.service", tmp_path / "memoryd.socket"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    assert "memoryd." not in done.stderr, done.stderr
