"""What the value of an option may be, where click has no type for it: a wrong one is a wrong command line."""

from __future__ import annotations

from typing import Any

import click

from memoryd.errors import InvalidInput

__all__ = ["SECONDS", "TIME"]


class Seconds(click.FloatRange):
    """A finite number of seconds, at least 0."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if not seconds < float("inf"):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(seconds)


class Time(click.ParamType[str]):
    """A time, given as the library takes it; the text itself is what goes on."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from memoryd.runtime import event_time

        try:
            event_time(value, 0)
        except InvalidInput as error:
            self.fail(f"{error.problem}.", param, ctx)
        return value


SECONDS = Seconds(min=0)
TIME = Time()
