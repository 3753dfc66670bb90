"""How well a backend's recall finds the turns that answer a question: the mean share of a question's evidence among the first hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from memoryd.core import Query
from memoryd.evaluate._dataset import ADVERSARIAL, Conversation, Question
from memoryd.evaluate._trial import CALL_SECONDS, Stage, Trial

__all__ = ["relevance"]

DEPTHS = (5, 10, 20)
_BATCH = 100


async def relevance(stage: Stage, name: str, conversations: Sequence[Conversation]) -> dict[str, Any]:
    """``{"recall@5", "recall@10", "recall@20"}`` as shares of 1, and how many ``questions`` they are the mean of.

    Raises what the backend raises.  Adversarial questions, which have no answer, are left out.
    """
    found: list[tuple[Question, list[str]]] = []
    for number, conversation in enumerate(conversations, 1):
        found += await _answers(Trial(stage, name, f"relevance {number}"), conversation)
    return {f"recall@{depth}": _recall(found, depth) for depth in DEPTHS} | {"questions": len(found)}


async def _answers(trial: Trial, conversation: Conversation) -> list[tuple[Question, list[str]]]:
    """Each question with the ids of the turns that recall found, best first."""
    asked = [question for question in conversation.questions if question.category != ADVERSARIAL]
    async with trial.opened():
        for start in range(0, len(conversation.turns), _BATCH):
            await trial.tell(*conversation.turns[start : start + _BATCH])
        return [(question, await _ranked(trial, conversation, question)) for question in asked]


async def _ranked(trial: Trial, conversation: Conversation, question: Question) -> list[str]:
    names = {turn.event_id.hex(): turn.turn_id or "" for turn in conversation.turns}
    with trio.fail_after(CALL_SECONDS):
        hits = await trial.backend.recall(Query(conversation.user, question.text, max(DEPTHS)))
    return [names.get(hit.id, "") for hit in hits]


def _recall(found: Sequence[tuple[Question, list[str]]], depth: int) -> float:
    shares = [len(question.evidence.intersection(ranked[:depth])) / len(question.evidence) for question, ranked in found]
    return round(sum(shares) / len(shares), 4) if shares else 0.0
