"""Reads a data set in LoCoMo's form: conversations in sessions, and questions with the ids of the utterances that answer them.

Each conversation is a user (the first speaker) talking with an agent (the second); an utterance is a turn, so that ranks count
utterances.  Categories: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Scope, Turn, Value, new_event_id, to_micros
from memoryd.errors import ConfigError

__all__ = ["ADVERSARIAL", "Conversation", "Question", "load_dataset", "read_dataset"]

ADVERSARIAL = 5
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@attrs.frozen(slots=True, eq=False, repr=False)
class Question(Value):
    """``evidence`` are the ids of the turns that answer it, never empty."""

    text: str
    evidence: frozenset[str]
    category: int


@attrs.frozen(slots=True, eq=False, repr=False)
class Conversation(Value):
    """``turns`` in order, each with its id; ``questions`` about them."""

    user: str
    turns: tuple[Turn, ...] = attrs.field(repr=False)
    questions: tuple[Question, ...] = attrs.field(repr=False)


def read_dataset(path: Path) -> list[Conversation]:
    """The conversations of a file.  Raises :class:`ConfigError`, one line, and :class:`OSError`."""
    try:
        return load_dataset(json.loads(path.read_bytes()))
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ConfigError) else "is not JSON"
        raise ConfigError(f"dataset {path}: {reason}") from None


def load_dataset(rows: object) -> list[Conversation]:
    """The conversations of decoded JSON.  Raises :class:`ConfigError`."""
    if not isinstance(rows, list) or not rows:
        raise ConfigError("expected a list of conversations in LoCoMo's form")
    return [_checked(number, row) for number, row in enumerate(rows, 1)]


def _checked(number: int, row: Any) -> Conversation:
    try:
        return _conversation(row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"conversation {number} is not in LoCoMo's form: {type(error).__name__}: {error}") from None


def _conversation(row: Mapping[str, Any]) -> Conversation:
    turns = tuple(_turns(row["conversation"]))
    ids = frozenset(turn.turn_id for turn in turns if turn.turn_id is not None)
    return Conversation(row["conversation"]["speaker_a"], turns, tuple(_questions(row["qa"], ids)))


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    user, agent = conversation["speaker_a"], conversation["speaker_b"]
    sessions = sorted((int(found[1]), name) for name in conversation if (found := _SESSION.fullmatch(name)))
    for _, name in sessions:
        at = _time(conversation[f"{name}_date_time"])
        scope = Scope(user=user, session=name, agent=agent)
        for said in conversation[name]:
            asked, answered = (said["text"], "") if said["speaker"] == user else ("", said["text"])
            yield Turn(new_event_id(), scope, at, asked, answered, said["dia_id"])


def _time(text: str) -> int:
    return to_micros(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC))


def _questions(rows: Sequence[Mapping[str, Any]], ids: frozenset[str]) -> Iterator[Question]:
    """The questions whose evidence names turns of the conversation (a field may name several)."""
    for row in rows:
        evidence = frozenset(turn for field in row["evidence"] for turn in _TURN_ID.findall(field)) & ids
        if evidence:
            yield Question(row["question"], evidence, row["category"])
