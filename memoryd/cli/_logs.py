"""``memoryd logs``."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, write_line
from memoryd.errors import ConfigError

_LEVELS = ("debug", "info", "warning", "error")
_FIRST = ("timestamp", "level", "event")
_LOOK = 0.25


@command(name="logs")
@click.option("--tail", type=click.IntRange(min=0), default=50, show_default=True, help="The latest records at most.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new ones, until interrupted.")
@click.option("--level", type=click.Choice(_LEVELS), default="debug", show_default=True, help="This level and above.")
@click.option("--area", metavar="NAME", help="Only records AREA.EVENT of this area, such as journal.")
@pass_options
def logs(options: Options, tail: int, follow: bool, level: str, area: str | None) -> None:
    """Show the records of memoryd that logging.file collects.  They hold ids, counts and classes of errors, never a text.

    \b
    Examples:
      memoryd logs --tail 20 --level warning
      memoryd logs --follow --area delivery
      memoryd logs --json
    """
    path = _path(options)
    file = _opened(path)
    records = _records(chain(_opened(path.with_name(path.name + ".1")) or (), file or ()), _LEVELS.index(level), area)
    for record in deque(records, maxlen=tail):
        _tell(record, as_json=options.json)
    if follow:
        for record in _records(_following(path, file), _LEVELS.index(level), area):
            _tell(record, as_json=options.json)


def _path(options: Options) -> Path:
    from memoryd.settings import load_config, log_path

    found = load_config(options.home, options.profile_name)
    path = log_path(found.home, found.config.logging.file)
    if path is None:
        raise ConfigError('logging.file: is not set, so records go to stderr; set it, for instance to "logs/memoryd.log"')
    return path


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _following(path: Path, file: IO[bytes] | None) -> Iterator[bytes]:
    """What is appended, in whatever file stands at ``path`` by and by."""
    while True:
        moved = file is None or not _is_at(file, path)
        if file is not None:
            yield from file  # also what came to the old file before it was moved away
        if moved and (begun := _opened(path)) is not None:
            file = begun
        else:
            time.sleep(_LOOK)


def _is_at(file: IO[bytes], path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _records(lines: Iterable[bytes], lowest: int, area: str | None) -> Iterator[dict[str, Any]]:
    """The records of that level and area; a line that is none is passed over."""
    for line in lines:
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and _level(record) >= lowest and (area is None or _area(record) == area):
                yield record


def _level(record: dict[str, Any]) -> int:
    level = record.get("level")
    return _LEVELS.index(level) if level in _LEVELS else len(_LEVELS)


def _area(record: dict[str, Any]) -> str:
    return str(record.get("event", "")).partition(".")[0]


def _tell(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_line(json.dumps(record, ensure_ascii=False))
        return
    rest = (f"{name}={value}" for name, value in record.items() if name not in _FIRST)
    write_line(plain("  ".join([*(str(record.get(name, "")) for name in _FIRST), *rest])))
