"""The lines around the best ones, and what a query leaves out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from memoryd.core import Value
from memoryd.store import Connection
from memoryd_local._rows import id_list

__all__ = ["Limits", "LineRow", "lines_around"]

LineRow: TypeAlias = tuple[int, int | None, int, int, int, int, int, int]
"""n in its scope, session, place, tokens, flags, time, label, role."""


@attrs.frozen(slots=True, eq=False, repr=False)
class Limits(Value):
    """What a query leaves out: lines after ``as_of``, of other sessions, with other labels; None: no such limit."""

    as_of: int | None
    session: int | None
    labels: frozenset[int] | None

    def parameters(self) -> tuple[int | None, int | None, str | None]:
        return self.as_of, self.session, None if self.labels is None else id_list(self.labels)

    def allow(self, row: LineRow) -> bool:
        """Whether a neighbour, which is of an allowed line's session, may be found as well."""
        return (self.as_of is None or row[5] <= self.as_of) and (self.labels is None or row[6] in self.labels)


def lines_around(
    connection: Connection, sql: Mapping[str, str], first: int, best: Sequence[int], limits: Limits | None
) -> list[LineRow]:
    """The lines ``best`` (n in the scope whose ids begin at ``first``) and their neighbours up to two places away in their sessions.

    Neighbours mostly arrived one after another, so that they stand side by side; only where other sessions came between they are
    looked up by place.
    """
    near: dict[int, Any] = {row[0]: row for row in connection.all(sql["lines_near"], (id_list(best), first)) if row[0] > 0}
    at = {(row[1], row[2]): row for row in near.values()}
    rows: dict[int, Any] = {}
    apart: list[int] = []
    for n in best:
        row = near[n]
        rows[n] = row
        if row[1] is not None:
            beside = [at[key] for step in (-2, -1, 1, 2) if (key := (row[1], row[2] + step)) in at]
            rows.update((one[0], one) for one in beside)
            if len(beside) < 4:
                apart.append(n)
    if apart:
        rows.update((row[0], row) for row in connection.all(sql["lines_beside"], (id_list(apart), first)))
    return [row for row in rows.values() if limits is None or limits.allow(row)]
