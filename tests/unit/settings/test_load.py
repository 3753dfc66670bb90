"""Which value wins, and where it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.core import Config, profile_folder
from memoryd.errors import ConfigError
from memoryd.settings import config_paths, default_toml, describe, load_config, resolve_home


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def profile_file(home: Path, profile: str = "default") -> Path:
    return home / "profiles" / profile_folder(profile) / "memoryd.toml"


def test_without_any_file_everything_is_at_its_default(tmp_path: Path) -> None:
    loaded = load_config(tmp_path, environ={"HOME": str(tmp_path)})
    assert loaded.config == Config()
    assert loaded.files == ()
    assert {shown.source for shown in describe(loaded)} == {"default"}
    assert list(tmp_path.iterdir()) == []


def test_the_sample_file_says_the_defaults(tmp_path: Path) -> None:
    write(tmp_path / "memoryd.toml", default_toml())
    assert load_config(tmp_path, environ={}).config == Config()


def test_each_source_wins_over_the_one_before(tmp_path: Path) -> None:
    xdg = {"XDG_CONFIG_HOME": str(tmp_path / "etc")}
    home = tmp_path / "home"
    assert load_config(home, environ=xdg).config.gate.mode == "block"
    write(tmp_path / "etc/memoryd/memoryd.toml", '[gate]\nmode = "warn"\nquota_bytes = 7')
    assert load_config(home, environ=xdg).config.gate.mode == "warn"
    write(home / "memoryd.toml", '[gate]\nmode = "off"\nfallback_dir = "/second"')
    assert load_config(home, environ=xdg).config.gate.quota_bytes == 0, "the home's file replaces the user's, it does not add to it"
    own = write(profile_file(home), '[gate]\nmode = "warn"')
    loaded = load_config(home, environ=xdg)
    assert (loaded.config.gate.mode, loaded.sources["gate.mode"]) == ("warn", str(own))
    assert (loaded.config.gate.fallback_dir, loaded.sources["gate.fallback_dir"]) == ("/second", str(home / "memoryd.toml"))
    loaded = load_config(home, environ=xdg | {"MEMORYD_GATE": " OFF "})
    assert (loaded.config.gate.mode, loaded.sources["gate.mode"]) == ("off", "MEMORYD_GATE")
    loaded = load_config(home, overrides={"gate": {"mode": "block"}}, environ=xdg | {"MEMORYD_GATE": "off"})
    assert (loaded.config.gate.mode, loaded.sources["gate.mode"]) == ("block", "arguments")


def test_a_profiles_file_is_only_its_own(tmp_path: Path) -> None:
    write(profile_file(tmp_path, "work/../x"), 'language = "none"')
    assert load_config(tmp_path, "work/../x", environ={}).config.language == "none"
    assert load_config(tmp_path, "work", environ={}).config.language == "en"


def test_backend_by_variable(tmp_path: Path) -> None:
    def backend(**environ: str) -> str:
        return load_config(tmp_path, environ=environ).config.backend

    assert backend(HERMES_MEMORY_BACKEND="  Null ") == "null"
    assert backend(HERMES_MEMORY_BACKEND="null", MEMORYD_BACKEND="LOCAL") == "local"
    assert backend(HERMES_MEMORY_BACKEND="null", MEMORYD_BACKEND="  ") == "null", "an empty variable counts as not set"


def test_every_key_has_a_variable(tmp_path: Path) -> None:
    environ = {
        "MEMORYD_MIRRORS": "alpha, Beta,alpha", "MEMORYD_CAPTURE_PRIVATE": "yes", "MEMORYD_LOG_MAX_BYTES": "5_000",
        "MEMORYD_STORE_FREE_FLOOR": "auto", "MEMORYD_DEADLINES_RECALL": "1.5", "MEMORYD_GATE_FALLBACK_DIR": "/x y",
    }  # fmt: skip
    config = load_config(tmp_path, environ=environ).config
    assert config.mirrors == ("alpha", "beta")
    assert config.capture.private is True
    assert config.log.max_bytes == 5000
    assert config.store.free_floor == "auto"
    assert config.deadlines.recall == 1.5
    assert config.gate.fallback_dir == "/x y"


def test_backend_tables_are_passed_on_and_merged_by_key(tmp_path: Path) -> None:
    write(tmp_path / "memoryd.toml", '[backends.Honcho]\nurl = "http://a"\napi_key_env = "K"\n[backends.honcho.peers]\nx = 1')
    write(profile_file(tmp_path), '[backends.honcho]\nurl = "http://b"')
    with pytest.raises(ConfigError):
        load_config(tmp_path, environ={})
    write(tmp_path / "memoryd.toml", '[backends.Honcho]\nurl = "http://a"\napi_key_env = "K"\n[backends.Honcho.peers]\nx = 1')
    loaded = load_config(tmp_path, environ={})
    assert loaded.config.backends == {"honcho": {"url": "http://b", "api_key_env": "K", "peers": {"x": 1}}}
    sources = {shown.key: shown.source for shown in describe(loaded)}
    assert sources["backends.honcho.url"] == str(profile_file(tmp_path))
    assert sources["backends.honcho.api_key_env"] == str(tmp_path / "memoryd.toml")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MEMORYD_HOME": "/m", "XDG_DATA_HOME": "/d", "HOME": "/h"}, "/m"),
        ({"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/memoryd"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/h"}, "/h/.local/share/memoryd"),
        ({"HOME": "/h"}, "/h/.local/share/memoryd"),
        ({"MEMORYD_HOME": "~/m", "HOME": "/h"}, "/h/m"),
        ({"MEMORYD_HOME": "/a/../b", "HOME": "/h"}, "/b"),
    ],
)
def test_home(environ: dict[str, str], expected: str) -> None:
    assert resolve_home(None, environ) == Path(expected)


def test_a_given_home_wins(tmp_path: Path) -> None:
    assert resolve_home(tmp_path, {"MEMORYD_HOME": "/m"}) == tmp_path
    assert resolve_home("rel", {}).is_absolute()


@pytest.mark.parametrize("given", ["", "a\0b"])
def test_a_home_that_is_no_path(given: str) -> None:
    with pytest.raises(ConfigError, match="^--home: expected the path of a directory$"):
        resolve_home(given, {})


def test_paths_are_told_without_touching_the_disk(tmp_path: Path) -> None:
    general, own = config_paths(tmp_path / "no", "p", {"HOME": "/h"})
    assert general == Path("/h/.config/memoryd/memoryd.toml")
    assert own == tmp_path / "no/profiles" / profile_folder("p") / "memoryd.toml"
