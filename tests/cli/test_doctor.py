"""``memoryd doctor`` as a command; what it finds is tested beside its checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoryd.store import profile_directory


def test_healthy_ends_with_0_and_says_what_was_looked_at(memoryd: Any) -> None:
    memoryd("store", "k", "v")
    done = memoryd("doctor", "--json")
    assert (done.code, done.json["state"]) == (0, "ok")
    assert all(check["state"] == "ok" and not check["remedy"] for check in done.json["checks"])
    assert {check["profile"] for check in done.json["checks"]} == {"", "default"}
    text = memoryd("doctor").out
    assert text.endswith("\nok\n")
    assert "\nok\twrite-and-read\t" in text


def test_what_should_be_looked_at_ends_with_3(memoryd: Any, private_home: Path) -> None:
    memoryd("store", "k", "v")
    (profile_directory(private_home, "default") / "memory.db").chmod(0o644)
    done = memoryd("doctor", "--json")
    assert (done.code, done.json["state"]) == (3, "degraded")
    [check] = [check for check in done.json["checks"] if check["state"] != "ok"]
    assert (check["name"], check["state"]) == ("permissions", "warn")
    assert "chmod -R go-rwx" in check["remedy"]


def test_what_is_broken_ends_with_1(memoryd: Any, private_home: Path) -> None:
    memoryd("store", "k", "v", "--profile", "a")
    memoryd("store", "k", "v", "--profile", "b")
    (profile_directory(private_home, "b") / "memory.db").write_bytes(b"\xa5" * 8192)
    assert memoryd("doctor", "--profile", "a").code == 0
    done = memoryd("doctor", "--all-profiles", "--json")
    assert (done.code, done.json["state"]) == (1, "broken")
    assert {check["profile"] for check in done.json["checks"] if check["state"] == "fail"} == {"b"}
    assert "fail\tb: memory\t" in memoryd("doctor", "--all-profiles").out


def test_a_settings_file_that_cannot_be_read_is_a_finding(memoryd: Any, private_home: Path) -> None:
    memoryd("store", "k", "v")
    (private_home / "memoryd.toml").write_text("gate = 5")
    done = memoryd("doctor", "--json")
    assert done.code == 1
    assert "configuration" in {check["name"] for check in done.json["checks"] if check["state"] == "fail"}


def test_a_host_is_looked_at_by_its_own_checks(memoryd: Any) -> None:
    done = memoryd("doctor", "claude-code", "--json")
    assert done.json["checks"]
    assert all(check["remedy"] for check in done.json["checks"] if check["state"] == "fail")
    unknown = memoryd("doctor", "nothing")
    assert (unknown.code, "claude-code" in unknown.err) == (64, True)


def test_the_remedy_that_it_names_mends_a_damaged_memory(memoryd: Any, private_home: Path) -> None:
    memoryd("turn", "--session", "s1", stdin='{"user": "I live in Oslo", "assistant": "Noted."}')
    memory = profile_directory(private_home, "default") / "memory.db"
    data = bytearray(memory.read_bytes())
    for offset in range(4096, len(data), 4096):
        data[offset : offset + 64] = b"\xa5" * 64
    memory.write_bytes(bytes(data))
    broken = memoryd("doctor", "--json")
    assert broken.code == 1
    assert any("memoryd repair" in check["remedy"] for check in broken.json["checks"] if check["name"] == "memory")
    assert memoryd("repair").code == 0
    assert memoryd("doctor").code == 0
    assert memoryd("recall", "--json", "Oslo").json["hits"]


def test_adapters_that_are_broken_are_reported_and_stop_nothing(memoryd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exploding.py").write_text("1 / 0")
    info = tmp_path / "strangers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[memoryd.hosts]\nmissing = no_such_module:host\nexploding = exploding:host\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    memoryd("store", "k", "v")
    shown = memoryd("status", "--json")
    assert (shown.code, shown.json["state"]) == (0, "ok")
    problems = {host["name"]: host["problem"] for host in shown.json["hosts"] if host["problem"]}
    assert problems["exploding"] == "its adapter failed: ZeroDivisionError"
    assert "no_such_module" in problems["missing"]
    done = memoryd("doctor", "--json")
    assert done.code == 3
    found = {check["name"]: check for check in done.json["checks"] if check["state"] != "ok"}
    assert set(found) == {"host missing", "host exploding"}
    assert all("reinstall" in check["remedy"] for check in found.values())
    exploding = memoryd("doctor", "exploding", "--json")
    assert (exploding.code, exploding.json["checks"][0]["said"]) == (1, problems["exploding"])


FAILING = """
from memoryd_null import create as make

async def fails(self):
    1 / 0

def create(context):
    return type("Far", (type(make(context)),), {"open": fails, "aclose": fails})()
"""


def test_a_backend_that_fails_as_no_backend_may_is_a_finding(memoryd: Any, private_home: Path) -> None:
    memoryd("store", "k", "v")
    (private_home / "plugins").mkdir(mode=0o700)
    plugin = private_home / "plugins/far.py"
    plugin.write_text(FAILING)
    plugin.chmod(0o600)
    (private_home / "memoryd.toml").write_text('mirrors = ["far"]')
    done = memoryd("doctor", "--json")
    found = {check["name"]: check for check in done.json["checks"] if check["state"] != "ok"}
    assert done.code == 1
    assert found["health far"]["said"] == "it failed: ZeroDivisionError"
    assert "mend the plug-in" in found["health far"]["remedy"]
