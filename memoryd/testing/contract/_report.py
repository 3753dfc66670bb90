"""Running the contract, and what came of it."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import trio

from memoryd.testing.contract._bench import Bench, Subject

__all__ = ["Check", "ContractReport", "check", "checks", "run_contract"]

Check: TypeAlias = Callable[[Bench], Awaitable[None]]
DEADLINE = 60.0  # seconds a check may take: a hang is a failure

_checks: list[Check] = []


def check(function: Check) -> Check:
    """Register ``function`` as a check; its name and first line say what it proves."""
    _checks.append(function)
    return function


def checks() -> tuple[Check, ...]:
    """Every check of the contract, in the order in which they are run."""
    return tuple(_checks)


@attrs.frozen(slots=True)
class ContractReport:
    """Names of checks that passed, and for each that failed why.  Nothing is ever skipped: a missing capability is asserted."""

    backend: str
    passed: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        return not self.failed

    def as_json(self) -> dict[str, Any]:
        """``{"passed": n, "failed": n, "skipped": 0, "failures": {check: reason}}``."""
        return {"passed": len(self.passed), "failed": len(self.failed), "skipped": 0, "failures": dict(self.failed)}


async def run_contract(subject: Subject, *, on_check: Callable[[str, bool], object] | None = None) -> ContractReport:
    """Every check on ``subject``, each in a temporary home.  ``on_check(name, passed)`` is told as they end."""
    passed: list[str] = []
    failed: list[tuple[str, str]] = []
    for one in _checks:
        name = one.__name__
        problem = await _problem_of(one, subject)
        if problem is None:
            passed.append(name)
        else:
            failed.append((name, problem))
        if on_check is not None:
            on_check(name, problem is None)
    return ContractReport(subject.name, tuple(passed), tuple(failed))


async def _problem_of(one: Check, subject: Subject) -> str | None:
    with tempfile.TemporaryDirectory(prefix="memoryd-contract-") as scratch:
        try:
            with trio.fail_after(DEADLINE):
                await one(Bench(subject, Path(scratch)))
        except Exception as error:  # noqa: BLE001  a check fails in any way it likes: that is what the report is for
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    return None
