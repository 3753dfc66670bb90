"""The redactor of the process: our own patterns and the detector, over the text as it is and with its lines joined."""

from __future__ import annotations

from threading import Lock

from memoryd.core import Redactor, redactor_of

__all__ = ["load_redactor"]

_lock = Lock()
_loaded: list[Redactor] = []


def load_redactor() -> Redactor:
    """The redactor, made at the first call.  Blocking: the detector's rules are compiled, or read from the user's cache.

    Raises :class:`ImportError` where the detector is not installed: nothing is sent without it.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_make())
        return _loaded[0]


def _make() -> Redactor:
    # dozens of patterns and a compiled library: only who sends something pays for them
    from memoryd.redact._detector import make_detector
    from memoryd.redact._formats import find_formats
    from memoryd.redact._joined import across_lines
    from memoryd.redact._places import find_places

    detect = make_detector()
    finders = (find_places, find_formats, detect)
    return redactor_of(*finders, *map(across_lines, finders))
