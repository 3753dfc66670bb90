"""``memoryd install hermes`` and its undoing, on real homes, through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import memoryd_hermes._checks as checks_module
import memoryd_hermes._install as install_module
from memoryd import __version__
from memoryd.blocking import Memory
from memoryd.core import scope
from memoryd.errors import ConfigError
from memoryd.hosts import Check, apply_plan, find_host, make_place
from memoryd_hermes import host
from memoryd_hermes._settings import read_settings
from memoryd_hermes._version import Installed

CONFIG = """\
# what I chose
model:
    default: gpt   # the cheap one
memory:
    provider: honcho
    nudge_interval: 0
compression: {enabled: true}
"""
OLD = Installed("0.19.0", checkpoints=False, entry_points=False)
NEW = Installed("0.22.2", checkpoints=True, entry_points=True)
Beside = Callable[[Installed | None], None]


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    home = tmp_path / "hermes"
    home.mkdir()
    (home / "config.yaml").write_text(CONFIG)
    return home


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Beside:
    """Which Hermes is installed beside memoryd: none is, where these tests run."""

    def choose(found: Installed | None) -> None:
        for module in (install_module, checks_module):
            monkeypatch.setattr(module, "installed_host", lambda: found)

    return choose


def command(*words: str, hermes: Path | None = None, code: int = 0) -> str:
    environ = {**os.environ, **({"HERMES_HOME": str(hermes)} if hermes else {})}
    done = subprocess.run([sys.executable, "-m", "memoryd", *words], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def place(hermes: Path, **options: str) -> Any:
    return make_place(options={"hermes_home": str(hermes), **options})


def install(hermes: Path, **options: str) -> None:
    where = place(hermes, **options)
    apply_plan(host.plan_install(where), where.memoryd_home)


def tree(folder: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def found(hermes: Path, name: str) -> Check:
    (check,) = [check for check in host.checks(place(hermes)) if check.name == name]
    return check


# -- install and uninstall ---------------------------------------------------------------------------------------------------


def test_install_edits_one_value_and_adds_the_folder(hermes: Path, private_home: Path) -> None:
    said = command("install", "hermes", hermes=hermes)
    assert (hermes / "config.yaml").read_text() == CONFIG.replace("honcho", "memoryd")
    assert "memory.provider was honcho" in said and str(hermes / "memoryd-store") in said
    folder = hermes / "plugins/memoryd"
    assert sorted(tree(folder)) == [
        "README.md", "__init__.py", "cli.py", "config_schema.py", "plugin.yaml", "skills/maintenance/SKILL.md",
    ]  # fmt: skip
    manifest = YAML(typ="safe").load((folder / "plugin.yaml").read_text())
    assert (manifest["pip_dependencies"], manifest["version"]) == (["memoryd"], __version__)  # so that the folder alone works
    assert CONFIG.encode() in tree(private_home / "backups").values()
    before = tree(hermes)
    assert "nothing to change" in command("install", "hermes", "--hermes-home", str(hermes))
    assert tree(hermes) == before


def test_dry_run_changes_nothing(hermes: Path) -> None:
    said = command("install", "hermes", "--dry-run", hermes=hermes)
    assert "+    provider: memoryd" in said and "would create" in said
    assert tree(hermes) == {"config.yaml": CONFIG.encode()}


def test_uninstall_leaves_what_was_recorded(hermes: Path) -> None:
    command("install", "hermes", hermes=hermes)
    store = hermes / "memoryd-store"
    with Memory(store) as memory, scope(user="ada"):
        memory.store("city", "Oslo")
    said = command("uninstall", "hermes", hermes=hermes)
    assert str(store) in said
    assert (hermes / "config.yaml").read_text() == CONFIG.replace("honcho", "''")
    assert not (hermes / "plugins").exists()
    with Memory(store) as memory, scope(user="ada"):
        assert memory.retrieve("city") is not None
    assert "nothing to change" in command("uninstall", "hermes", hermes=hermes)


def test_purge_asks_and_then_nothing_is_left(hermes: Path, private_home: Path) -> None:
    command("install", "hermes", hermes=hermes)
    store = hermes / "memoryd-store"
    (hermes / "memoryd").mkdir()
    (hermes / "memoryd/config.json").write_text("{}")
    with Memory(store) as memory, scope(user="ada"):
        memory.store("city", "a word that nobody else says")
    assert store.exists()
    command("uninstall", "hermes", "--purge", hermes=hermes, code=64)  # nobody is there to say yes
    assert store.exists()
    command("uninstall", "hermes", "--purge", "--yes", hermes=hermes)
    assert sorted(tree(hermes)) == ["config.yaml"]
    assert not any(b"nobody else" in content for content in tree(private_home).values())


def test_purge_leaves_a_store_that_is_shared(hermes: Path, tmp_path: Path) -> None:
    (hermes / "memoryd").mkdir()
    (hermes / "memoryd/config.json").write_text(json.dumps({"store": str(tmp_path / "shared")}))
    install(hermes)
    plan = host.plan_uninstall(place(hermes, purge="yes"))
    assert plan.erases == ()
    assert any("shared" in note for note in plan.notes)


def test_uninstall_leaves_other_providers_and_files(hermes: Path) -> None:
    folder = hermes / "plugins/memoryd"
    install(hermes)
    (folder / "mine.txt").write_text("mine")
    (hermes / "config.yaml").write_text(CONFIG)
    command("uninstall", "hermes", hermes=hermes)
    assert tree(hermes) == {"config.yaml": CONFIG.encode(), "plugins/memoryd/mine.txt": b"mine"}


def test_a_linked_folder_is_left_alone(hermes: Path, tmp_path: Path) -> None:
    (hermes / "plugins").mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "__init__.py").write_text("# mine")
    (hermes / "plugins/memoryd").symlink_to(target)
    install(hermes)
    apply_plan(host.plan_uninstall(place(hermes)), tmp_path / "home")
    assert tree(target) == {"__init__.py": b"# mine"}


def test_an_old_folder_is_renewed(hermes: Path) -> None:
    install(hermes)
    file = hermes / "plugins/memoryd/cli.py"
    file.write_text("# of an older version")
    install(hermes)
    assert "memoryd_command" in file.read_text()


def test_a_host_with_entry_points_gets_no_folder(hermes: Path, beside: Beside) -> None:
    beside(NEW)
    install(hermes)
    assert sorted(tree(hermes)) == ["config.yaml"]
    (hermes / "config.yaml").write_text("plugins:\n  isolation: host\n")
    install(hermes)
    assert (hermes / "plugins/memoryd/__init__.py").exists()


@pytest.mark.parametrize("text", ["memory: [", "- a list\n"])
def test_a_config_that_is_none_is_left(hermes: Path, text: str) -> None:
    (hermes / "config.yaml").write_text(text)
    assert "config.yaml" in command("install", "hermes", hermes=hermes, code=64)
    assert tree(hermes) == {"config.yaml": text.encode()}


def test_the_home_is_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "variable"))
    named = find_host("hermes").plan_install(make_place(options={"hermes_home": str(tmp_path / "named")}))
    assert named.changes[-1].path == tmp_path / "named/config.yaml"
    assert host.plan_install(make_place()).changes[-1].path == tmp_path / "variable/config.yaml"
    monkeypatch.delenv("HERMES_HOME")
    assert host.plan_install(make_place()).changes[-1].path == Path(os.environ["HOME"]).resolve() / ".hermes/config.yaml"
    with pytest.raises(ConfigError, match="hermes-home"):
        host.plan_install(make_place(options={"hermes_home": " "}))


# -- the gate ----------------------------------------------------------------------------------------------------------------


def test_the_gate_is_armed_after_it_was_tried(hermes: Path, beside: Beside) -> None:
    beside(NEW)
    install(hermes, gate="yes")
    assert "compression: {checkpoint_required: true, enabled: true}" in (hermes / "config.yaml").read_text()
    with Memory(hermes / "memoryd-store") as memory, scope(user="memoryd"):
        assert [receipt.trigger for info in memory.checkpoints() for receipt in info.attempts] == ["probe"]
    assert not host.plan_install(place(hermes, gate="yes")).changes
    assert not host.plan_install(place(hermes)).changes
    install(hermes, gate="no")
    assert "checkpoint_required: false" in (hermes / "config.yaml").read_text()


def test_uninstall_disarms_the_gate(hermes: Path, beside: Beside, tmp_path: Path) -> None:
    beside(NEW)
    install(hermes, gate="yes")
    apply_plan(host.plan_uninstall(place(hermes)), tmp_path / "home")
    assert "checkpoint_required: false" in (hermes / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("there", "config", "reason"),
    [
        (None, CONFIG, "no Hermes is installed beside"),
        (OLD, CONFIG, "0.19.0 has no checkpoint contract"),
        (NEW, "model: {openai_runtime: codex_app_server}\n", "codex_app_server"),
    ],
)
def test_a_gate_that_would_not_hold_is_not_armed(hermes: Path, beside: Beside, there: Installed | None, config: str, reason: str) -> None:
    beside(there)
    (hermes / "config.yaml").write_text(config)
    with pytest.raises(ConfigError, match=reason):
        install(hermes, gate="yes")
    assert tree(hermes) == {"config.yaml": config.encode()}


def test_a_gate_whose_archive_fails_is_not_armed(hermes: Path, beside: Beside) -> None:
    beside(NEW)
    with Memory(hermes / "memoryd-store") as memory:
        archive = Path(memory.status().directory) / "archive.db"
    archive.unlink(missing_ok=True)
    archive.mkdir()
    with pytest.raises(ConfigError, match="tried and failed.*not armed"):
        install(hermes, gate="yes")
    assert (hermes / "config.yaml").read_text() == CONFIG


# -- doctor ------------------------------------------------------------------------------------------------------------------


def test_a_healthy_install_is_ok(hermes: Path, beside: Beside) -> None:
    beside(NEW)
    install(hermes, gate="yes")
    assert {check.name: check.state for check in host.checks(place(hermes))} == {
        "hermes provider": "ok", "hermes gate": "ok", "hermes store": "ok",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name", "state", "said", "remedy"),
    [
        ("compression: {checkpoint_required: 'yes'}\n", "hermes gate", "fail", "memoryd is not active", "install hermes"),
        ("memory: {provider: memoryd}\n", "hermes gate", "skip", "not armed", "--gate"),
        ("memory: {provider: memoryd}\nplugins: {disabled: [memoryd]}\n", "hermes provider", "fail", "plugins.disabled", "enable memoryd"),
        (
            "memory: {provider: memoryd}\ncompression: {micro_compact: true}\n",
            "hermes compaction", "warn", "micro_compact is on: it compacts without", "micro_compact to false",
        ),
        (
            "memory: {provider: memoryd}\ncompression: {codex_responses_native: true, checkpoint_required: true}\n",
            "hermes compaction", "warn", "no effect", "codex_responses_native to false",
        ),
        (
            "memory: {provider: memoryd}\nmodel: {openai_runtime: codex_app_server}\ncompression: {checkpoint_required: true}\n",
            "hermes compaction", "fail", "does not start", "openai_runtime",
        ),
        (
            "memory: {provider: memoryd}\nmodel: {api_mode: codex_app_server}\n",
            "hermes compaction", "warn", "by itself", "openai_runtime",
        ),
    ],
)  # fmt: skip
def test_each_fault_of_the_configuration_has_a_remedy(
    hermes: Path, beside: Beside, config: str, name: str, state: str, said: str, remedy: str
) -> None:
    beside(NEW)
    (hermes / "config.yaml").write_text(config)
    check = found(hermes, name)
    assert check.state == state
    assert said in check.said and remedy in check.remedy


def test_a_host_that_is_too_old_is_said(hermes: Path, beside: Beside) -> None:
    beside(OLD)
    install(hermes)
    assert found(hermes, "hermes gate").state == "warn"
    config = hermes / "config.yaml"
    config.write_text(config.read_text().replace("enabled: true", "enabled: true, checkpoint_required: true"))
    check = found(hermes, "hermes gate")
    assert (check.state, "0.19.0 has no checkpoint contract" in check.said) == ("fail", True)


def test_a_missing_provider_is_said(hermes: Path, beside: Beside) -> None:
    beside(OLD)
    (hermes / "config.yaml").write_text("memory: {provider: memoryd}\n")
    check = found(hermes, "hermes provider")
    assert (check.state, check.remedy) == ("fail", "memoryd install hermes")


def test_a_store_that_is_broken_is_said(hermes: Path, beside: Beside) -> None:
    beside(NEW)
    install(hermes)
    assert found(hermes, "hermes store").state == "skip"
    with Memory(hermes / "memoryd-store") as memory:
        log = Path(memory.status().directory) / "log.db"
    assert found(hermes, "hermes store").state == "ok"
    log.write_bytes(b"no database" * 1000)
    check = found(hermes, "hermes store")
    assert check.state == "fail"
    assert "doctor" in check.remedy


def test_settings_that_are_damaged_are_said(hermes: Path) -> None:
    install(hermes)
    (hermes / "memoryd").mkdir()
    (hermes / "memoryd/config.json").write_text("{")
    (check,) = host.checks(place(hermes))
    assert (check.state, "config.json" in check.said) == ("fail", True)
    with pytest.raises(ConfigError):
        read_settings(hermes)


def test_another_provider_is_no_fault(hermes: Path) -> None:
    (check,) = host.checks(place(hermes))
    assert (check.state, "honcho" in check.said) == ("skip", True)
