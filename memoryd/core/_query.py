"""A recall query, checked."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from memoryd.core._check import check_count, check_name, check_text, optional_name, required_name
from memoryd.core._value import Value
from memoryd.errors import InvalidInput

__all__ = ["MAX_LIMIT", "MAX_QUERY", "Query", "checked_limit"]

MAX_QUERY = 4096  # characters that are looked at
MAX_LIMIT = 1000


def checked_limit(value: object) -> int:
    """``value`` as a number of results: at least 0; above :data:`MAX_LIMIT` it is cut.  Raises :class:`InvalidInput`."""
    return min(check_count("limit", value), MAX_LIMIT)


def _labels(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidInput("labels", f"expected a mapping, got {type(value).__name__}")
    return {check_name("labels", name): check_name(f"labels.{name}", wanted) for name, wanted in value.items()}


def _query_text(value: object) -> str:
    return check_text("query", value)[:MAX_QUERY]


@attrs.frozen(slots=True, eq=False, repr=False)
class Query(Value):
    """``text`` (cut at :data:`MAX_QUERY` characters) over everything of ``user``; ``session`` narrows to one thread, ``labels``
    (agent, workspace, platform) filter, ``as_of`` (microseconds since the epoch) answers as of then."""

    user: str = attrs.field(validator=required_name)
    text: str = attrs.field(converter=_query_text, repr=False)
    limit: int = attrs.field(default=10, converter=checked_limit)
    as_of: int | None = None
    session: str | None = attrs.field(default=None, validator=optional_name)
    labels: Mapping[str, str] = attrs.field(factory=dict, converter=_labels)
