"""SQL is text with a name, in ``.sql`` files inside the package that uses it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

__all__ = ["load_migrations", "load_queries"]

NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)
MIGRATION = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def load_queries(package: str, filename: str = "queries.sql") -> Mapping[str, str]:
    """The statements of ``filename`` in ``package``, by name.  A line ``-- name: append`` begins a statement."""
    head, *parts = NAME.split(files(package).joinpath(filename).read_text("utf-8"))
    names, texts = parts[0::2], parts[1::2]
    if _has_code(head) or len(set(names)) != len(names):
        raise ValueError(f"{package}/{filename}: every statement needs a name of its own")
    return MappingProxyType({name: text.strip() for name, text in zip(names, texts, strict=True)})


def load_migrations(package: str, folder: str = "migrations") -> tuple[str, ...]:
    """The migrations of ``package`` in order: ``migrations/0001_what.sql``, ``0002_what.sql``, ... without a gap."""
    scripts = {e.name: e.read_text("utf-8") for e in files(package).joinpath(folder).iterdir() if MIGRATION.match(e.name)}
    numbers = [int(name[:4]) for name in sorted(scripts)]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"{package}/{folder}: migrations must be numbered 0001, 0002, ... without a gap; found {numbers}")
    return tuple(scripts[name] for name in sorted(scripts))


def _has_code(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("--") for line in text.splitlines())
