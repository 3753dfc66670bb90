"""``MEMORYD_*`` variables that mean nothing: most often a name with a slip in it, whose user believes that it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memoryd.core import Config
from memoryd.settings._files import KEYS, one_line, variables

__all__ = ["OTHER_VARIABLES", "unknown_variables"]

_PREFIX = "MEMORYD_"

OTHER_VARIABLES = frozenset({
    "MEMORYD_BENCH_ROWS", "MEMORYD_ENABLE_PROJECT_PLUGINS", "MEMORYD_HOME", "MEMORYD_HOSTS", "MEMORYD_PRIVATE", "MEMORYD_PROFILE",
    "MEMORYD_SOCKET", "MEMORYD_TRACEBACK", "MEMORYD_TRANSCRIPT_BYTES", "MEMORYD_USER",
})  # fmt: skip
"""Those that are no setting of a file."""


def unknown_variables(config: Config, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """One line for each variable that neither memoryd nor a table of ``config`` knows, with the nearest name that is known."""
    env = os.environ if environ is None else environ
    known = {*OTHER_VARIABLES, *(name for key in KEYS.values() for name in variables(key))}
    # a backend's table may name the variable that holds a secret
    named = {value for table in config.backends.values() for key, value in table.items() if key.endswith("_env")}
    return tuple(_told(name, known) for name in sorted(env) if name.startswith(_PREFIX) and name not in known | named)


def _told(name: str, known: set[str]) -> str:
    from difflib import get_close_matches  # only where there is something to say

    words = {candidate.removeprefix(_PREFIX): candidate for candidate in sorted(known)}
    nearest = get_close_matches(name.removeprefix(_PREFIX).upper(), words, n=1, cutoff=0.6)
    hint = f"; did you mean {words[nearest[0]]}?" if nearest else ""
    return f"environment: {one_line(name)[:80]}: unknown variable, it changes nothing{hint}"
