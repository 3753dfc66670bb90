"""The ``config.yaml`` of a Hermes home: single values read and set, with every other byte of the file as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError

__all__ = ["HostConfig", "truthy"]

_TRUE = frozenset({"1", "true", "yes", "on"})


class HostConfig:
    """The text of the file, and what it says.  ``set`` changes the text in memory; who has it writes it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = self.before = text
        self.values = _values(path, text)

    @classmethod
    def read(cls, hermes_home: Path) -> HostConfig:
        """The file of ``hermes_home``; an empty one where there is none.  Raises :class:`ConfigError` where it cannot be read."""
        path = hermes_home / "config.yaml"
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            text = ""
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: is not UTF-8 text") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        return cls(path, text)

    @property
    def changed(self) -> bool:
        return self.text != self.before

    def get(self, section: str, key: str) -> Any:
        """The value, None where there is none."""
        table = self.values.get(section)
        return table.get(key) if isinstance(table, Mapping) else None

    def set(self, section: str, key: str, value: str | bool) -> None:
        """Raises :class:`ConfigError` where the file is written in a way that only its author can change."""
        if self.get(section, key) == value:
            return
        table = self.values.get(section)
        wanted = {**self.values, section: {**(table if isinstance(table, Mapping) else {}), key: value}}
        text = _with_value(self.text, section, key, _literal(value))
        try:
            right = _values(self.path, text) == wanted
        except ConfigError:
            right = False
        if not right:
            raise ConfigError(f"{self.path}: cannot be edited safely; set {section}.{key} to {_literal(value)} by hand")
        self.text, self.values = text, wanted


def truthy(value: object) -> bool:
    """As the host reads a switch: true, or a text that says so."""
    return value is True or str(value).strip().lower() in _TRUE


def _literal(value: str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value or "''"


def _values(path: Path, text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML  # 40 ms, which the command line of a host does not pay for each call
    from ruamel.yaml.error import YAMLError

    try:
        values = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ConfigError(f"{path}: is not YAML: {' '.join(str(error).split())[:200]}") from None
    if values is not None and not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a mapping")
    return values or {}


def _with_value(text: str, section: str, key: str, literal: str) -> str:
    from ruamel.yaml import YAML

    root = YAML().compose(text)
    line_end = "\r\n" if "\r\n" in text else "\n"
    if root is None or (_pair(root, section) is None and not root.flow_style):
        gap = "" if not text or text.endswith("\n") else line_end
        return f"{text}{gap}{section}:{line_end}  {key}: {literal}{line_end}"
    if (found := _pair(root, section)) is None:
        return _inserted(text, root, f"{section}: {{{key}: {literal}}}", line_end)
    if not isinstance(_pairs(found[1]), list):
        return _replaced(text, found, f"{{{key}: {literal}}}")
    if (inner := _pair(found[1], key)) is not None:
        return _replaced(text, inner, literal)
    return _inserted(text, found[1], f"{key}: {literal}", line_end)


def _inserted(text: str, table: Any, entry: str, line_end: str) -> str:
    """``entry`` as the first of a mapping's."""
    start = table.start_mark.index
    if table.flow_style:
        return f"{text[: start + 1]}{entry}{', ' if table.value else ''}{text[start + 1 :]}"
    return f"{text[:start]}{entry}{line_end}{' ' * table.start_mark.column}{text[start:]}"


def _replaced(text: str, pair: tuple[Any, Any], literal: str) -> str:
    name, node = pair
    start, end = node.start_mark.index, node.end_mark.index
    if start == end:  # nothing stands after the colon
        start = end = text.index(":", name.end_mark.index) + 1
        literal = f" {literal}"
    return text[:start] + literal + text[end:]


def _pair(table: Any, key: str) -> tuple[Any, Any] | None:
    """The nodes of ``key`` and its value, in a mapping's node."""
    return next(((name, value) for name, value in _pairs(table) or () if name.value == key), None)


def _pairs(node: Any) -> Any:
    """The pairs of a mapping's node; None for other nodes."""
    from ruamel.yaml.nodes import MappingNode

    return node.value if isinstance(node, MappingNode) else None
