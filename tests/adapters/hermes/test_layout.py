"""The folder that the host loads, held to the code behind it; and the settings file from the side that writes it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

import memoryd_hermes
from memoryd import __version__
from memoryd.errors import ConfigError
from memoryd_hermes import register_cli
from memoryd_hermes._config_file import save, schema, set_up
from memoryd_hermes._settings import FIELDS, Field, read_settings, settings_path

FOLDER = Path(memoryd_hermes.__file__).parent / "memoryd"


def loaded(file: Path, name: str) -> ModuleType:
    """A module as hosts load one: by its path, under a name of theirs."""
    spec = importlib.util.spec_from_file_location(f"_hermes_user_memory.memoryd.{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the folder --------------------------------------------------------------------------------------------------------------


def test_the_folder_holds_what_hosts_load_and_nothing_else() -> None:
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert there == {"README.md", "__init__.py", "cli.py", "config_schema.py", "plugin.yaml", "skills/maintenance/SKILL.md"}
    text = (FOLDER / "__init__.py").read_text()
    assert "register_memory_provider" in text[:8192]  # by this a host knows a provider's folder
    assert "from ." not in text + (FOLDER / "cli.py").read_text()


def test_one_provider_however_it_is_loaded() -> None:
    """The host executes the folder under a name of its own: there is still one real module behind it."""
    first, second = loaded(FOLDER / "__init__.py", "first"), loaded(FOLDER / "__init__.py", "second")
    assert first.MemorydProvider is second.MemorydProvider is memoryd_hermes.MemorydProvider


def test_plugin_yaml_says_what_the_code_has() -> None:
    said = YAML(typ="safe").load((FOLDER / "plugin.yaml").read_text())
    assert (said["name"], said["version"], said.get("pip_dependencies")) == ("memoryd", __version__, None)  # it is installed
    hooks = {name for name in vars(memoryd_hermes.MemorydProvider) if name.startswith("on_")}
    assert set(said["hooks"]) == hooks


def test_the_skill_only_reads() -> None:
    text = (FOLDER / "skills/maintenance/SKILL.md").read_text()
    assert text.startswith("---\nname: maintenance\ndescription: ")
    commands = {line.split("`hermes memoryd ")[1].split()[0].strip("`") for line in text.splitlines() if "`hermes memoryd " in line}
    parser = argparse.ArgumentParser()
    register_cli(parser)
    (subparsers,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    assert commands == set(subparsers.choices)
    assert "--release" not in text and "--clear" not in text


def test_commands_of_the_host_import_nothing_heavy() -> None:
    code = (
        f"import importlib.util, sys; spec = importlib.util.spec_from_file_location('x', {str(FOLDER / 'cli.py')!r});"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module);"
        "import argparse; module.register_cli(argparse.ArgumentParser());"
        "print([name for name in ('trio', 'apsw', 'ruamel', 'structlog', 'asyncio', 'click', 'attrs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_sample_is_what_install_writes(tmp_path: Path) -> None:
    sample = Path(__file__).parents[3] / "config/hermes/config.yaml"
    said = YAML(typ="safe").load(sample.read_text())
    assert said["memory"] == {"provider": "memoryd"}
    assert said["compression"] == {"checkpoint_required": True, "micro_compact": False, "codex_responses_native": False}


# -- what the dashboard shows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Option:
    value: str
    label: str


@dataclass(frozen=True)
class _Field:
    key: str
    label: str
    kind: str = "text"
    default: str = ""
    description: str = ""
    options: tuple[_Option, ...] = ()
    env_key: str | None = None
    inline: bool = False


@dataclass(frozen=True)
class _Schema:
    name: str
    label: str
    storage: str
    fields: tuple[_Field, ...] = field(default=())


def test_the_dashboard_shows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ModuleType("plugins.memory.config_schema")
    vars(host).update(ProviderConfigSchema=_Schema, ProviderField=_Field, ProviderFieldOption=_Option)
    for name in ("plugins", "plugins.memory"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, host.__name__, host)
    shown = loaded(FOLDER / "config_schema.py", "config_schema").CONFIG_SCHEMA
    assert (shown.name, shown.storage) == ("memoryd", "flat_json")  # so the host keeps it in <home>/memoryd/config.json
    assert settings_path("/home") == Path("/home/memoryd/config.json")
    assert [_told(one) for one in shown.fields] == [
        (one.key, one.label, one.kind, _default(one), one.doc, one.options, one.env_key or None, one.prompted) for one in FIELDS
    ]


def _told(one: _Field) -> tuple[Any, ...]:
    options = tuple(option.value for option in one.options)
    return one.key, one.label, one.kind, one.default, one.description, options, one.env_key, one.inline


def _default(one: Field) -> str:
    return str(one.default).lower() if isinstance(one.default, bool) else str(one.default)


# -- the settings file -------------------------------------------------------------------------------------------------------


def test_the_wizard_asks_for_the_backend_and_for_honcho() -> None:
    asked = {one["key"]: one for one in schema()}
    assert list(asked) == ["backend", "honcho_url", "honcho_api_key"]
    assert asked["backend"]["choices"] == ["local", "honcho", "auto", "null"]
    assert asked["honcho_url"]["when"] == asked["honcho_api_key"]["when"] == {"backend": "honcho"}
    assert (asked["honcho_api_key"]["secret"], asked["honcho_api_key"]["env_var"]) == (True, "HONCHO_API_KEY")


def test_values_are_text_and_false_is_false(tmp_path: Path) -> None:
    save({"auto_recall": "false", "private": "TRUE", "recall_chars": "900", "backend": "Null"}, tmp_path)
    settings = read_settings(tmp_path)
    assert (settings.auto_recall, settings.private, settings.recall_chars, settings.backend) == (False, True, 900, "null")
    save({"recall_chars": "", "private": None, "unknown": "x", "honcho_api_key": "secret-word"}, tmp_path)
    assert json.loads(settings_path(tmp_path).read_text()) == {"auto_recall": False, "backend": "null"}
    assert settings_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_what_the_dashboard_wrote_stays(tmp_path: Path) -> None:
    path = settings_path(tmp_path)
    path.parent.mkdir()
    path.write_text('{"user": "ada", "of another version": 1}')
    save({"backend": "auto"}, tmp_path)
    assert json.loads(path.read_text()) == {"user": "ada", "of another version": 1, "backend": "auto"}


@pytest.mark.parametrize("values", [{"recall_chars": "many"}, {"private": "perhaps"}, {"automation": "x"}, {"recall_chars": "10"}])
def test_a_wrong_value_writes_nothing(tmp_path: Path, values: dict[str, str]) -> None:
    save({"user": "ada"}, tmp_path)
    before = settings_path(tmp_path).read_bytes()
    with pytest.raises(ConfigError, match=next(iter(values))):
        save({"backend": "honcho", **values}, tmp_path)
    assert settings_path(tmp_path).read_bytes() == before
    assert [path.name for path in settings_path(tmp_path).parent.iterdir()] == ["config.json"]


def test_a_damaged_file_is_not_replaced(tmp_path: Path) -> None:
    path = settings_path(tmp_path)
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(ConfigError, match="config.json"):
        save({"backend": "local"}, tmp_path)
    assert path.read_text() == "{"


# -- the setup ---------------------------------------------------------------------------------------------------------------


def test_the_setup_without_a_terminal_takes_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("# mine\nmemory: {provider: honcho}\n")
    (tmp_path / "config.yaml").chmod(0o640)
    save({"user": "ada"}, tmp_path)
    config: dict[str, Any] = {"memory": {"provider": "honcho"}}
    set_up(str(tmp_path), config, ask=lambda field, current: current)
    assert (tmp_path / "config.yaml").read_text() == "# mine\nmemory: {provider: memoryd}\n"
    assert (tmp_path / "config.yaml").stat().st_mode & 0o777 == 0o640
    assert config == {"memory": {"provider": "memoryd"}}
    assert read_settings(tmp_path).user == "ada"
    assert "memoryd" in capsys.readouterr().out


def test_answers_go_to_the_settings_and_secrets_to_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[tuple[str, str, str]] = []
    homes: list[str] = [""]
    constants, config = ModuleType("hermes_constants"), ModuleType("hermes_cli.config")
    vars(constants).update(
        set_hermes_home_override=lambda home: homes.append(home), reset_hermes_home_override=lambda token: homes.pop()
    )
    vars(config).update(save_env_value=lambda name, value: saved.append((homes[-1], name, value)))
    for module in (constants, ModuleType("hermes_cli"), config):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    answers = {"backend": "honcho", "honcho_url": "http://127.0.0.1:1", "honcho_api_key": "secret-word"}
    set_up(tmp_path, {}, ask=lambda field, current: answers[field.key])
    assert saved == [(str(tmp_path), "HONCHO_API_KEY", "secret-word")]
    assert homes == [""]
    assert (read_settings(tmp_path).backend, read_settings(tmp_path).honcho_url) == ("honcho", "http://127.0.0.1:1")
    assert not any(b"secret-word" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
