"""Evaluates backends one after another and puts the report together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from memoryd.core import Config, Evaluation, from_micros, report_of
from memoryd.evaluate._dataset import Conversation
from memoryd.evaluate._faults import reliability
from memoryd.evaluate._measure import Noted, measure
from memoryd.evaluate._relevance import relevance
from memoryd.evaluate._scratch import scratch_home
from memoryd.evaluate._trial import Stage
from memoryd.runtime import available_backends, backend_context, build_backend, find_backend, now_micros
from memoryd.settings import resolve_home
from memoryd.store import open_profile

__all__ = ["evaluate"]

AUTO = "auto"


def evaluate(
    names: Sequence[str] = (),
    *,
    home: Path | None = None,
    profile: str = "default",
    config: Config | None = None,
    conversations: Sequence[Conversation] = (),
    faults: bool = False,
) -> dict[str, Any]:
    """Evaluate the backends ``names`` and return the report as JSON values; see docs/howto/choose-a-backend.md.

    Without names: every backend that keeps memory on this machine, and the cloud backends that ``config`` names.  It blocks for seconds
    and runs a loop of its own, so call it in a thread from a loop.  Nothing of the user's home is read or written but its plug-ins.

    Raises :class:`BackendNotFound` for a name that there is not; anything else that goes wrong is a note in the report.
    """
    root = resolve_home(home)
    for name in names:
        find_backend(name, root)
    with scratch_home() as scratch:
        stage = Stage(scratch, root, Config() if config is None else config)
        chosen = list(dict.fromkeys(names)) or _usual(stage)
        run = _Run(stage, profile, conversations, faults)
        # an interruption between two checkpoints would leave a backend half-way through its own closing
        return trio.run(run.all, chosen, restrict_keyboard_interrupt_to_checkpoints=True)


def _usual(stage: Stage) -> list[str]:
    """What is evaluated where nobody says what: a key in the environment alone sends nothing, so a cloud has to be configured by name."""
    config = stage.config
    named = {config.backend, *config.mirrors}
    return [name for name in sorted(available_backends(stage.home)) if name in named or not _is_cloud(stage, name, config.backend)]


def _is_cloud(stage: Stage, name: str, primary: str) -> bool:
    """Whether the backend is off the machine, or cannot be built to say so; under ``auto`` one that is configured counts as named."""
    profile = open_profile(stage.scratch, f"{name} asked")
    try:
        backend = build_backend(find_backend(name, stage.home), backend_context(name, profile, stage.config))
        return backend.info.is_cloud and not (primary == AUTO and bool(backend.is_available()))
    except Exception:  # noqa: BLE001 - a stranger's code that nobody asked for fails in any way it likes
        return True


class _Run:
    """One evaluation of several backends."""

    def __init__(self, stage: Stage, profile: str, conversations: Sequence[Conversation], faults: bool) -> None:
        self._stage = stage
        self._profile = profile
        self._conversations = conversations
        self._faults = faults

    async def all(self, names: Sequence[str]) -> dict[str, Any]:
        evaluations: list[Evaluation] = []
        beside: dict[str, dict[str, Any]] = {}
        for name in names:
            evaluation, beside[name] = await self._one(name)
            evaluations.append(evaluation)
        return report_of(evaluations, from_micros(now_micros()).isoformat(), beside)

    async def _one(self, name: str) -> tuple[Evaluation, dict[str, Any]]:
        notes = Noted()
        evaluation, cost = await measure(self._stage, name, self._profile, notes)
        beside: dict[str, Any] = {"cost": cost} if cost else {}
        if evaluation.is_viable and self._conversations:
            with notes.during("relevance"):
                beside["relevance"] = await relevance(self._stage, name, self._conversations)
        if evaluation.is_viable and self._faults:
            beside["reliability"] = await reliability(self._stage, name)
        return attrs.evolve(evaluation, notes=tuple(notes.lines)), beside
