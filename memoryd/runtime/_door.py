"""What a host imports.  The runtime behind it (its stores, its backends) loads when one is opened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from memoryd.core import Config
    from memoryd.runtime._open import OpenRuntime

__all__ = ["open_runtime"]


def open_runtime(
    home: str | os.PathLike[str] | None = None,
    profile: str = "default",
    config: Config | Mapping[str, Any] | None = None,
    *,
    on_bug: Literal["contain", "raise"] | None = None,
    vfs: str | None = None,
) -> OpenRuntime:
    """An async context manager that opens the memory of ``profile`` below ``home``.

    ``home`` defaults to ``$MEMORYD_HOME``, else the user's data directory.  ``config`` is a :class:`~memoryd.Config` used as it is, or
    a mapping of keys over what files and environment say.  ``on_bug="raise"`` ends the runtime at a bug in one of its tasks instead of
    containing it (the default where ``memoryd.testing`` is loaded).  ``vfs`` names an SQLite VFS, for tests.

    Raises :class:`ConfigError`, :class:`StoreError` and its subclasses, :class:`BackendNotFound`.
    """
    from memoryd.runtime._open import OpenRuntime

    if on_bug is None:
        on_bug = "raise" if "memoryd.testing" in sys.modules else "contain"
    return OpenRuntime(home, profile, config, on_bug, vfs)
