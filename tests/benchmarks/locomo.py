"""How well recall finds the right turn: a data set in LoCoMo's form, through the real local backend.

    python -m tests.benchmarks.locomo DATA [--json]

Each conversation is a user (the first speaker) talking with an agent (the second); an utterance is a turn, so that ranks count utterances.
A question's evidence are the ids of the turns that answer it.  R@k is the mean share of a question's evidence within the first k hits.
Categories: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial (left out of the total, as is usual).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from memoryd.core import BackendContext, Cursor, Entry, Query
from memoryd.evaluate import Conversation, Question, load_dataset
from memoryd.store import open_profile
from memoryd_local import LocalBackend, create

__all__ = ["BARS", "Scores", "evaluate", "main"]

BARS = {"R@10": 79.0, "nDCG@10": 64.0}
STRETCH = {"R@10": 80.5}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
DEPTH = 20


@attrs.frozen
class Scores:
    """The figures of one ranking, or their mean over ``count``; shares of 1."""

    at: Mapping[str, float]
    count: int = 1

    @classmethod
    def of(cls, ranked: Sequence[str], evidence: frozenset[str]) -> Scores:
        hits = [rank for rank, turn in enumerate(ranked, 1) if turn in evidence]
        recall = {f"R@{k}": sum(rank <= k for rank in hits) / len(evidence) for k in (5, 10, 20)}
        gain = sum(1 / math.log2(rank + 1) for rank in hits if rank <= 10)
        ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(evidence), 10) + 1))
        return cls({**recall, "MRR": 1 / hits[0] if hits else 0.0, "nDCG@10": gain / ideal})

    @classmethod
    def mean(cls, scores: Sequence[Scores]) -> Scores:
        names = scores[0].at if scores else ()
        return cls({name: math.fsum(one.at[name] for one in scores) / len(scores) for name in names}, len(scores))


def evaluate(conversations: list[Any]) -> dict[str, Scores]:
    """The mean scores by category name, and ``all`` over categories 1 to 4."""
    found: dict[str, list[Scores]] = defaultdict(list)
    for conversation in load_dataset(conversations):
        for question, ranked in trio.run(_ask_all, conversation):
            scores = Scores.of(ranked, question.evidence)
            found[CATEGORIES[question.category]].append(scores)
            if question.category != 5:
                found["all"].append(scores)
    return {name: Scores.mean(scores) for name, scores in sorted(found.items())}


async def _ask_all(conversation: Conversation) -> list[tuple[Question, list[str]]]:
    with tempfile.TemporaryDirectory() as home:
        backend = _backend(Path(home))
        await backend.open()
        try:
            await backend.apply([Entry(Cursor("locomo", seq), turn) for seq, turn in enumerate(conversation.turns, 1)])
            return [(one, await _ranked(backend, conversation.user, one.text)) for one in conversation.questions]
        finally:
            await backend.aclose()


def _backend(home: Path) -> LocalBackend:
    profile = open_profile(home, "locomo")
    return create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))


async def _ranked(backend: LocalBackend, user: str, text: str) -> list[str]:
    return [hit.turn_id or "" for hit in await backend.recall(Query(user=user, text=text, limit=DEPTH))]


def _verdict(name: str, got: float) -> str:
    if name not in BARS:
        return ""
    if got < BARS[name]:
        return "MISSED"
    return "stretch" if got >= STRETCH.get(name, math.inf) else "reached"


def _print_table(results: Mapping[str, Scores]) -> None:
    names = list(results["all"].at)
    print(f"{'':12}" + "".join(f"{name:>9}" for name in names) + f"{'questions':>11}")
    for category, scores in results.items():
        print(f"{category:12}" + "".join(f"{100 * value:9.1f}" for value in scores.at.values()) + f"{scores.count:11}")
    print()
    for name, bar in BARS.items():
        got = 100 * results["all"].at[name]
        stretch = f", stretch {STRETCH[name]}" if name in STRETCH else ""
        print(f"{name}: bar {bar}{stretch}, got {got:.1f}: {_verdict(name, got)}")


def _as_json(results: Mapping[str, Scores]) -> str:
    figures = {
        category: {**{name: round(100 * value, 2) for name, value in scores.at.items()}, "questions": scores.count}
        for category, scores in results.items()
    }
    verdicts = {name: _verdict(name, 100 * results["all"].at[name]) for name in BARS}
    return json.dumps({"figures": figures, "bars": BARS, "stretch": STRETCH, "verdicts": verdicts}, indent=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 where every bar is reached, 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="locomo", description="Recall quality on a data set in LoCoMo's form.")
    parser.add_argument("data", type=Path, help="the JSON file (a list of conversations)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    results = evaluate(json.loads(options.data.read_text("utf-8")))
    if options.json:
        print(_as_json(results))
    else:
        _print_table(results)
    return 0 if all(100 * results["all"].at[name] >= bar for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
