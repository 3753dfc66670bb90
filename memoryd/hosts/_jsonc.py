"""Edits JSON text in place: what is not touched keeps every byte, comments and trailing commas included.

    text = put_json(text, ("hooks", "Stop"), [...])      # sets a member, making the objects around it
    text = append_json(text, ("hooks", "Stop"), {...})   # adds an item to a list, making it
    text = drop_json(text, ("hooks", "Stop", 0))         # takes a member or an item out

Taking out what was put in last gives the text from before.  Everything raises :class:`ConfigError` for text that is no JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs

from memoryd.errors import ConfigError

__all__ = ["append_json", "drop_json", "parse_json", "put_json"]

Path: TypeAlias = Sequence[str | int]

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*"|[-+.\w]+')
_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_BREAKS = ("\n", "\r\n")
_REST_OF_LINE = re.compile(r"(?:[ \t]+|/\*[^\n]*?\*/)*(?://[^\n]*)?")
_DEPTH = 200


@attrs.frozen(slots=True)
class Node:
    """A value in the text, from ``start`` to ``end``.  ``parts`` are what a container holds, by key or index."""

    start: int
    end: int
    value: Any
    parts: tuple[Part, ...] = ()


@attrs.frozen(slots=True)
class Part:
    """A member or an item: from the key, or the item, to the value's end.  ``comma`` is where the comma after it stands, or -1."""

    key: str | int
    start: int
    node: Node
    comma: int


def parse_json(text: str) -> Any:
    """The value of ``text``; an empty text is an empty object.  Raises :class:`ConfigError`."""
    return _root(text).value


def put_json(text: str, path: Path, value: Any) -> str:
    """``text`` with ``value`` at ``path``; a value that is there already, and equal, leaves the text as it is."""
    node, rest = _deepest(text, path)
    if not rest:
        return text if node.value == value else text[: node.start] + _drawn(value, text, len(path)) + text[node.end :]
    _expect(node, dict, path)
    return _insert(text, node, rest[0], _nested(rest[1:], value), len(path) - len(rest))


def append_json(text: str, path: Path, item: Any) -> str:
    """``text`` with ``item`` as the last one of the list at ``path``."""
    node, rest = _deepest(text, path)
    if rest:
        return put_json(text, path, [item])
    _expect(node, list, path)
    return _insert(text, node, None, item, len(path))


def drop_json(text: str, path: Path) -> str:
    """``text`` without the member or item at ``path``; one that is not there leaves the text as it is."""
    node, rest = _deepest(text, path[:-1])
    found = next((part for part in reversed(node.parts) if part.key == path[-1]), None)
    if rest or found is None:
        return text
    index = node.parts.index(found)
    before = node.parts[index - 1] if index else None
    opening = before.comma + 1 if before is not None else node.start + 1
    start = _own_start(text, opening, found.start)
    if found.comma >= 0:
        return _joined(text[:start], text[found.comma + 1 :])
    if before is not None:  # the last one: the comma before it goes too
        return _joined(text[: before.comma] + text[before.comma + 1 : start], text[found.node.end :])
    left = text[start : found.start] + text[found.node.end : node.end - 1] if start == opening else "?"
    return _joined(text[:start], text[node.end - 1 if not left.strip() else found.node.end :])


def _joined(head: str, tail: str) -> str:
    """What is left, without a comment to the end of its line swallowing what comes next."""
    tokens = list(_TOKENS.finditer(head))
    open_end = bool(tokens) and tokens[-1][0].startswith("//") and tokens[-1].end() == len(head)
    return f"{head}{_newline(head) if open_end and not tail.startswith(_BREAKS) else ''}{tail}"


def _own_start(text: str, opening: int, start: int) -> int:
    """Where the white space before a part begins that belongs to it: after the comments that stand before it."""
    return opening + len(text[opening:start].rstrip()) if text[opening:start].strip() else opening


# -- reading -----------------------------------------------------------------------------------------------------------------


def _root(text: str) -> Node:
    start = _skip(text, 0)
    if start == len(text):
        return Node(start, start, {})
    node = _read(text, start, 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, node.end)
    return node


def _read(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] in ("{", "["):
        if depth == _DEPTH:
            raise _wrong(text, at)
        return _container(text, at, depth)
    match = _SCALAR.match(text, at)
    try:
        return Node(at, match.end(), json.loads(match[0], strict=False)) if match else _fail(text, at)
    except ValueError:
        raise _wrong(text, at) from None


def _container(text: str, start: int, depth: int) -> Node:
    is_object, at, parts = text[start] == "{", start + 1, list[Part]()
    while (at := _skip(text, at)) < len(text) and text[at] not in "}]":
        first = at
        key: str | int = len(parts)
        if is_object:
            name = _read(text, at, depth + 1)
            at = _skip(text, name.end)
            if not isinstance(name.value, str) or text[at : at + 1] != ":":
                raise _wrong(text, at)
            key, at = name.value, _skip(text, at + 1)
        node = _read(text, at, depth + 1)
        at = _skip(text, node.end)
        comma = at if text[at : at + 1] == "," else -1
        parts.append(Part(key, first, node, comma))
        if comma < 0:
            break
        at += 1
    if text[at : at + 1] != ("}" if is_object else "]"):
        raise _wrong(text, at)
    value = {part.key: part.node.value for part in parts} if is_object else [part.node.value for part in parts]
    return Node(start, at + 1, value, tuple(parts))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _fail(text: str, at: int) -> Node:
    raise _wrong(text, at)


def _wrong(text: str, at: int) -> ConfigError:
    return ConfigError(f"line {text.count(chr(10), 0, at) + 1}: is not valid JSON")


def _expect(node: Node, kind: type, path: Path) -> None:
    if not isinstance(node.value, kind):
        raise ConfigError(f"{'.'.join(map(str, path))}: expected {'an object' if kind is dict else 'a list'}")


def _deepest(text: str, path: Path) -> tuple[Node, list[str | int]]:
    """The innermost value on the way to ``path`` that is there, and what of the path is not."""
    node, rest = _root(text), list(path)
    while rest:
        found = next((part for part in reversed(node.parts) if part.key == rest[0]), None)
        if found is None:
            break
        node = found.node
        rest.pop(0)
    return node, rest


# -- writing -----------------------------------------------------------------------------------------------------------------


def _insert(text: str, node: Node, key: str | int | None, value: Any, depth: int) -> str:
    """``value`` as the last part of the container ``node``: on a line of its own, after the comment that ends the line before, or on
    the line that the container is on."""
    inside = text[node.start + 1 : node.end - 1]
    one_line = bool(node.parts) and "\n" not in inside
    newline, unit = _newline(text), _unit(text)
    margin, closing = (" ", "") if one_line else (newline + unit * (depth + 1), newline + unit * depth)
    drawn = json.dumps(value, ensure_ascii=False) if one_line else _drawn(value, text, depth + 1)
    drawn = drawn if key is None else f"{json.dumps(key, ensure_ascii=False)}: {drawn}"
    if node.start == node.end:  # an empty file
        return f"{text}{{{margin}{drawn}{closing}}}{newline}"
    if not node.parts:
        at = node.start + 1 + len(inside.rstrip())
        comma = after = ""
    else:
        last = node.parts[-1]
        comma, after = ("", ",") if last.comma >= 0 else (",", "")
        value_end = last.comma + 1 if last.comma >= 0 else last.node.end
        at = _line_end(text, value_end, node.end - 1)
        text = text[:value_end] + comma + text[value_end:]
        at += len(comma)
    end = node.end - 1 + len(comma)
    tail = "" if "\n" in text[at:end] else closing
    return f"{text[:at]}{margin}{drawn}{after}{tail}{text[at:]}"


def _line_end(text: str, at: int, limit: int) -> int:
    """After the comments that stand on the line of ``at``, where nothing else does."""
    match = _REST_OF_LINE.match(text, at, limit)
    return match.end() if match and text[at : match.end()].strip() else at


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _drawn(value: Any, text: str, depth: int) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return (_newline(text) + _unit(text) * depth).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    match = re.search(r"^([ \t]+)[^\s]", text, re.MULTILINE)
    return match[1] if match else "  "
