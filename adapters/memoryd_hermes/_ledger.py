"""What is recorded of each session, beside the store: one file a session, of keyed digests and the host's ids, never of text.

It says who the session belongs to, which session it came from, and which turns it has, so that turns that were missed can be told from
turns that the host only tells otherwise.  The log stays the record: without this file nothing is lost, and nothing is added twice
whose words are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoryd_hermes._turns import Entry

__all__ = ["Ledger", "Ledgers"]

_KEY_BYTES = 32
_KEPT = 512  # sessions whose ledger stays in memory


class Ledger:
    """The record of one session.  Take ``lock`` around whatever reads it and then adds to it."""

    def __init__(self, path: Path, digest: Callable[[str], str]) -> None:
        self.lock = threading.RLock()
        self.user = ""
        self.parent = ""
        self.entries: list[Entry] = []
        self.counts: Counter[str] = Counter()
        self.filled: Counter[tuple[str, str]] = Counter()  # by text and answer: turns that were filled in, by any process
        self.unclaimed: list[Entry] = []  # turns that were filled in and may still be told
        self.digest = digest
        self._path = path
        for line in _lines(path):
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        self.user = str(line.get("user") or self.user)
        self.parent = str(line.get("parent") or self.parent)
        if "turn" in line:
            place = line.get("at")
            entry = Entry(str(line["turn"]), str(line.get("answer", "")), tuple(map(str, line.get("uids", ()))))
            self._count(entry, place if isinstance(place, int) else None)

    def _count(self, entry: Entry, place: int | None) -> None:
        self.entries.insert(len(self.entries) if place is None else place, entry)
        self.counts[entry.text] += 1
        if place is not None:
            self.filled[entry.text, entry.answer] += 1

    def add(self, entry: Entry, place: int | None = None) -> None:
        """Note a turn that the log has: the newest, or one that belongs at ``place``."""
        self._count(entry, place)
        self._append({
            "turn": entry.text,
            "answer": entry.answer,
            **({"uids": entry.uids} if entry.uids else {}),
            **({} if place is None else {"at": place}),
        })  # fmt: skip

    def filled_elsewhere(self, entry: Entry) -> bool:
        """Whether another process filled that turn in since the file was read; what it wrote is known then."""
        now = Ledger(self._path, self.digest)
        if now.filled[entry.text, entry.answer] <= self.filled[entry.text, entry.answer]:
            return False
        self.entries, self.counts, self.filled = now.entries, now.counts, now.filled
        return True

    def belongs_to(self, user: str) -> None:
        """Note whose session it is."""
        if user != self.user:
            self.user = user
            self._append({"user": user})

    def came_from(self, parent: str) -> None:
        """Note the session that this one goes on from, once."""
        if not self.parent and not self.entries:
            self.parent = parent
            self._append({"parent": parent})

    def _append(self, line: dict[str, Any]) -> None:
        """Best effort, one write: a line that is not there costs a look at the log, not a turn."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(place, json.dumps(line).encode() + b"\n")
            finally:
                os.close(place)
        except OSError:
            pass


class Ledgers:
    """The ledgers of one store, below ``directory``.  Any thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Ledger] = OrderedDict()
        self._key = b""

    def of(self, session: str) -> Ledger:
        with self._lock:
            if session not in self._known:
                path = self._directory / f"{self._digest('session', session)[:40]}.jsonl"
                self._known[session] = Ledger(path, lambda text: self._digest("text", text))
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(session)
            return self._known[session]

    def line_of(self, session: str) -> list[Entry]:
        """What is recorded of ``session`` and of those that it came from, oldest first."""
        found: list[Entry] = []
        seen: set[str] = set()
        while session and session not in seen:
            seen.add(session)
            ledger = self.of(session)
            found[:0] = ledger.entries
            session = ledger.parent
        return found

    def _digest(self, kind: str, text: str) -> str:
        if not self._key:
            self._key = _made_key(self._directory / "key")
        data = kind.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a ledger; one that was cut off in mid-write is none."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    found: list[dict[str, Any]] = []
    for line in data.split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _made_key(path: Path) -> bytes:
    """The key of this store's digests, made where there is none; one for this process where the disk does not take it."""
    fresh = secrets.token_bytes(_KEY_BYTES)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"key.{fresh[:6].hex()}")
        place = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(place, fresh)
        finally:
            os.close(place)
        try:
            os.link(draft, path)  # the first one stays, whoever else makes one now
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        found = path.read_bytes()
    except OSError:
        return fresh
    return found if len(found) == _KEY_BYTES else fresh
