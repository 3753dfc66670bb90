"""Secrets are never written into configuration: a backend's table names the variable or the file that holds one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memoryd.errors import ConfigError

__all__ = ["refuse_secrets"]

_SECRET = r"(?i)(^|[_-])(api_?key|key|token|secret|passw(or)?d|passphrase|credentials?)$"
_USERINFO = r"://[^/@\s]*:[^/@\s]+@"


def refuse_secrets(where: str, path: str, value: object) -> None:
    """Raise :class:`ConfigError`, without the value, where a table holds a secret itself.  ``path`` is the full name of ``value``."""
    name = path.rpartition(".")[2]
    if isinstance(value, Mapping):
        for key, item in value.items():
            refuse_secrets(where, f"{path}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            refuse_secrets(where, path, item)
    elif re.search(_SECRET, name) or (isinstance(value, str) and re.search(_USERINFO, value)):
        raise ConfigError(
            f"{where}: {path}: a secret does not belong into the configuration; "
            f'name the variable or the file that holds it: {name}_env = "VARIABLE" or {name}_file = "/path"'
        )
