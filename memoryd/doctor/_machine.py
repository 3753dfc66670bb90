"""The interpreter and the libraries that memoryd stands on."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from memoryd import __version__
from memoryd.doctor._verdict import broken, fine
from memoryd.hosts import Check

__all__ = ["machine", "sqlite"]

_OLDEST = (3, 51, 3)


def machine() -> Iterator[Check]:
    yield fine("program", f"memoryd {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    try:
        yield sqlite(version("apsw"))
    except PackageNotFoundError:
        yield broken("sqlite", "apsw is not installed", "reinstall memoryd: pip install --force-reinstall memoryd")


def sqlite(apsw: str) -> Check:
    """apsw brings the SQLite whose version its own begins with."""
    parts = tuple(int(part) for part in re.findall(r"\d+", apsw)[:3])
    if parts < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        said = f"the SQLite of apsw {apsw} can corrupt a write-ahead log when it begins anew"
        return broken("sqlite", said, f"pip install 'apsw>={wanted}'")
    return fine("sqlite", f"SQLite {'.'.join(map(str, parts))} of apsw {apsw}")
