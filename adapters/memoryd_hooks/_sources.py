"""Histories that ``memoryd import`` takes in: transcripts of Claude Code and Codex, and conversations as OpenAI's API has them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.core import Event, Scope, Turn, evidence_of
from memoryd.errors import InvalidInput
from memoryd.hosts import Dialect, Said, import_id, look_at_git, project_of, read_lines, turns_in
from memoryd_hooks._claude import Claude
from memoryd_hooks._codex import Codex
from memoryd_hooks._payload import at_of, mapping, word

__all__ = ["ClaudeSource", "CodexSource", "OpenAISource"]


class ClaudeSource:
    help = "sessions of Claude Code: a .jsonl file, or a folder of them such as ~/.claude/projects"

    def events(self, path: Path) -> Iterator[Event]:
        for file in _files(path, ".jsonl"):
            agent = "subagent" if file.parent.name == "subagents" else ""
            yield from _turns(Claude(), file, lambda record: (word(record, "sessionId"), word(record, "cwd")), file.stem, agent)


class CodexSource:
    help = "sessions of Codex: a rollout file, or a folder of them such as ~/.codex/sessions"

    def events(self, path: Path) -> Iterator[Event]:
        for file in _files(path, ".jsonl"):
            place = _codex_session(file)
            yield from _turns(Codex(), file, lambda record, place=place: place, file.stem, "")


def _codex_session(file: Path) -> tuple[str, str]:
    """What the first record says of the session: its id, its working directory."""
    for line in read_lines(str(file)):
        if line.record is not None and line.record.get("type") == "session_meta":
            meta = mapping(line.record, "payload")
            return word(meta, "session_id") or word(meta, "id"), word(meta, "cwd")
        return "", ""
    return "", ""


def _turns(dialect: Dialect, file: Path, where: Any, session: str, agent: str) -> Iterator[Turn]:
    modified, last = int(file.stat().st_mtime * 1e6), 0
    for said, (named, cwd) in turns_in(dialect, str(file), where, agent):
        last = said.at if said.at is not None else last or modified
        yield _turn(dialect.name, said, named or session, cwd, last)


def _turn(host: str, said: Said, session: str, cwd: str, at: int) -> Turn:
    workspace = project_of(cwd, look_at_git) or None
    scope = Scope(session=session, platform=host, workspace=workspace, agent=said.agent or None)
    return Turn(import_id(host, session if host == "codex" else "", said.id), scope, at, said.user, said.assistant, f"{host}:{said.id}")


def _files(path: Path, suffix: str) -> list[Path]:
    """The file, or those of the folder and the folders in it, by what they are named and when they were begun."""
    if path.is_dir():
        found = [file for file in path.rglob(f"*{suffix}") if file.is_file()]
        return sorted(found, key=lambda file: (_begun(file), str(file)))
    if not path.exists():
        raise InvalidInput("PATH", f"{path}: there is no such file or folder")
    return [path]


def _begun(file: Path) -> int:
    """The time of the first record that says one."""
    for number, line in enumerate(read_lines(str(file))):
        at = at_of(line.record.get("timestamp")) if line.record is not None else None
        if at is not None or number > 20:
            return at or 0
    return 0


# -- conversations as OpenAI's API has them ----------------------------------------------------------------------------------


class OpenAISource:
    help = "conversations as JSON or JSONL: lists of messages with role and content, or objects with such a list as messages"

    def events(self, path: Path) -> Iterator[Event]:
        for file in [path] if path.is_file() else [*_files(path, ".json"), *_files(path, ".jsonl")]:
            for conversation in _conversations(file):
                yield from _conversation(conversation, int(file.stat().st_mtime * 1e6))


def _conversations(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        whole: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise InvalidInput("PATH", f"{file} cannot be read: {os.strerror(error.errno or 0)}") from error
    except (ValueError, RecursionError):
        whole = [line.record for line in read_lines(str(file)) if line.record is not None]
        if not whole:
            raise InvalidInput("PATH", f"{file} holds neither JSON nor JSON lines") from None
    yield from _split(whole)


def _split(whole: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(whole, Mapping):
        if isinstance(whole.get("messages"), list):
            yield whole
        return
    rows = [row for row in whole if isinstance(row, (Mapping, list))] if isinstance(whole, list) else []
    if any(isinstance(row, Mapping) and "role" in row for row in rows):
        yield {"messages": rows}
        return
    for row in rows:
        yield from _split(row)


def _conversation(conversation: Mapping[str, Any], modified: int) -> Iterator[Turn]:
    pairs = list(_pairs(conversation["messages"]))
    if not pairs:
        return
    named = next((str(conversation[key]) for key in ("id", "session", "session_id", "conversation_id") if conversation.get(key)), "")
    session = named or f"imported {import_id('openai-json', pairs[0][0], pairs[0][1]).hex()}"
    last = _time(conversation) or modified
    for number, (user, assistant, at) in enumerate(pairs):
        last = at or last
        id = import_id("openai-json", session, str(number), user, assistant)
        yield Turn(id, Scope(session=session[:500], platform="openai-json"), last, user, assistant)


def _pairs(messages: Sequence[Any]) -> Iterator[tuple[str, str, int | None]]:
    """(user, assistant, time) of each turn; several answers in a row are one."""
    user, answers, at = "", list[str](), None
    for row in messages:
        said = evidence_of(row)
        if said is None:
            continue
        if said.role == "user":
            if user or answers:
                yield user, "\n\n".join(answers), at
            user, answers, at = said.text, [], _time(row)
        else:
            answers.append(said.text)
            at = at or _time(row)
    if user or answers:
        yield user, "\n\n".join(answers), at


def _time(row: Mapping[str, Any]) -> int | None:
    for name in ("created_at", "timestamp", "create_time", "created"):
        value = row.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 253_402_300_800:
            return int(value * 1e6)
        if (at := at_of(value)) is not None:
            return at
    return None
