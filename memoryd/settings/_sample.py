"""The sample configuration: every setting at its default, with its documentation."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from memoryd.core import Key, config_keys, section_doc

__all__ = ["default_toml"]

_HEAD = """\
# memoryd.toml: every key at its default.  Delete what you do not change.
# Read from $MEMORYD_HOME/memoryd.toml, else $XDG_CONFIG_HOME/memoryd/memoryd.toml; then, over it, the profile's own
# (`memoryd config path` names the files); then MEMORYD_* variables; then arguments.
"""
_TAIL = """
# A backend's own settings go into a table of its name and are passed to it as they are.  Secrets are named, not written:
# [backends.example]
# api_key_env = "EXAMPLE_API_KEY"
# api_key_file = "/run/secrets/example"
"""


def default_toml() -> str:
    """The text of ``config/memoryd.toml``."""
    parts = [_HEAD]
    for section, keys in groupby(config_keys(), key=lambda key: key.section):
        parts.append(f"\n# {section_doc(section)}\n[{section}]\n" if section else "\n")
        parts.extend(f"# {_comment(key)}\n{key.name} = {_literal(key.default)}\n" for key in keys)
    return "".join(parts) + _TAIL


def _comment(key: Key) -> str:
    words = key.kind.expected
    return f"{key.doc}; {words}" if words.startswith("one of") else key.doc


def _literal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)
