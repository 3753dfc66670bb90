"""``memoryd evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, plain, table, write_json, write_line
from memoryd.cli._session import loaded

_HEADERS = ("backend", "score", "grade", "recommendation", "store ms", "retrieve ms", "query ms", "where")
_BESIDE = ("backend", "calls", "bytes given", "bytes kept here", "recall@10", "faults")


@command(name="evaluate")
@click.option("--backend", "names", metavar="NAME", multiple=True, help="Only this one; may be given more than once.")
@click.option("--dataset", metavar="FILE", help="Also recall@k on conversations in LoCoMo's form.")
@click.option("--faults", is_flag=True, help="Also what each does on a bad day: repeats, restarts, failing disks.")
@pass_options
def evaluate(options: Options, names: tuple[str, ...], dataset: str | None, faults: bool) -> None:
    """Measure the backends that could be used, in a scope of their own that is gone afterwards, and say which is best.

    Of cloud backends only those that the configuration or --backend names are asked.

    \b
    Examples:
      memoryd evaluate
      memoryd evaluate --backend local --faults
      memoryd evaluate --dataset conversations.json --json
    """
    from memoryd import evaluate as evaluating

    found = loaded(options)
    conversations = [] if dataset is None else evaluating.read_dataset(Path(dataset))
    with busy("evaluating"):
        report = evaluating.evaluate(
            names, home=found.home, profile=found.profile, config=found.config, conversations=conversations, faults=faults
        )
    if options.json:
        write_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    table(_HEADERS, map(_row, sorted(report["evaluations"], key=lambda one: -one["score"])))
    table(_BESIDE, (_beside(name, values) for name, values in report["beside"].items() if values))
    for one in report["evaluations"]:
        for note in one["notes"]:
            write_line(plain(f"{one['name']}: {note}"))
    for name, values in report["beside"].items():
        for fault, outcome in values.get("reliability", {}).get("faults", {}).items():
            write_line(plain(f"{name}: {fault}: {outcome}"))
    write_line(plain(report["recommendation"]))


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    spent = [_number(one[f"{step}_latency_ms"], ".2f") for step in ("store", "retrieve", "query")]
    return one["backend_name"], one["score"], one["grade"], one["recommendation"], *spent, one["data_location"]


def _beside(name: str, values: dict[str, Any]) -> tuple[object, ...]:
    cost, reliability = values.get("cost", {}), values.get("reliability")
    faults = "" if reliability is None else f"{reliability['passed']} passed, {reliability['failed']} failed"
    recall = _number(values.get("relevance", {}).get("recall@10"), ".1%")
    return name, cost.get("calls"), cost.get("bytes_given"), cost.get("bytes_kept_here"), recall, faults


def _number(value: float | None, shape: str) -> str:
    return "" if value is None else format(value, shape)
