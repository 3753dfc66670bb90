"""The documentation is true: what the program knows is documented, and what is documented exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import memoryd
from memoryd import core, errors
from memoryd.core import config_keys
from memoryd.settings import default_toml
from tests.architecture.reference import DRAWN, ROOT, commands, log_records, with_drawn_part

PAGES = sorted([ROOT / "README.md", ROOT / "adapters/README.md", *(ROOT / "docs").rglob("*.md")])
REFERENCE = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md")}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_pages_are_as_the_program_draws_them(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert text == with_drawn_part(text, DRAWN[name]()), "run: python tests/architecture/reference.py"


def test_every_command_and_option_is_documented() -> None:
    page = REFERENCE["cli.md"]
    for path, text in commands():
        assert f"## `{path}`\n" in page
        for option in re.findall(r"--[a-z-]+", text):
            assert option in page


def test_every_configuration_key_is_documented() -> None:
    for key in config_keys():
        assert f"| `{key.path}` |" in REFERENCE["config.md"]
        assert key.doc


def test_the_sample_configuration_is_the_defaults() -> None:
    text = (ROOT / "config/memoryd.toml").read_text("utf-8")
    assert text == default_toml(), "run: python tests/architecture/reference.py"
    assert {path for path, _ in _flat(tomllib.loads(text))} == {key.path for key in config_keys()}


def _flat(table: dict[str, object]) -> list[tuple[str, object]]:
    top = [(name, value) for name, value in table.items() if not isinstance(value, dict)]
    inner = [(f"{name}.{key}", item) for name, value in table.items() if isinstance(value, dict) for key, item in value.items()]
    return top + inner


def test_every_error_is_documented_and_listed() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, BaseException)}
    assert defined == set(errors.__all__)
    for name in defined:
        assert f"| `{name}` |" in REFERENCE["errors.md"]
        assert getattr(errors, name).__doc__


def test_every_event_is_documented() -> None:
    events = [member.__name__ for member in get_args(core.Event)]
    assert events
    for name in events:
        assert f"`{name}`" in REFERENCE["file-formats.md"], f"docs/reference/file-formats.md does not describe the event {name}"


def test_every_log_record_is_documented_and_well_named() -> None:
    for name, _, _ in log_records():
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", name), f"a record is named area.event: {name}"
        assert f"`{name}`" in REFERENCE["records.md"]


def test_every_public_name_is_documented() -> None:
    page = REFERENCE["python.md"] + REFERENCE["errors.md"]
    for name in memoryd.__all__:
        assert name == "__version__" or re.search(rf"\b{name}\b", page), f"docs/reference/python.md does not mention memoryd.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if not target.startswith(("http://", "https://", "mailto:", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_pages_exist(page: Path) -> None:
    known = {path for path, _ in commands()}
    groups = {path.rpartition(" ")[0] for path in known} - {"memoryd"}
    for line in re.findall(r"^\s*(?:\$ )?(?:.*[|;&] )?(memoryd(?: [a-z]+)+)", _shell(page.read_text("utf-8")), re.MULTILINE):
        words = line.split()
        depth = 3 if " ".join(words[:2]) in groups else 2
        assert " ".join(words[:depth]) in known, f"{page.name} shows `{line}`"


def _shell(text: str) -> str:
    return "\n".join(re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL))
