"""The client's side of a connection: calls in, bytes out; bytes in, answers out.  It needs the standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NamedTuple

from memoryd import __version__
from memoryd.errors import ConnectionLost, MemorydError, ProtocolError
from memoryd.wire._faults import decode_error
from memoryd.wire._lines import Lines
from memoryd.wire._states import CLIENT, Machine
from memoryd.wire._values import MakeRecord, pack, pack_rows, unpack
from memoryd.wire._version import SPOKEN

__all__ = ["Answer", "Caller", "Progress"]


class Answer(NamedTuple):
    """To the call with that ``id``: a ``value``, or the ``error`` to raise.  ``id`` None: an error about the connection itself."""

    id: int | None
    value: Any = None
    error: MemorydError | None = None

    def result(self) -> Any:
        """The value.  Raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


class Progress(NamedTuple):
    """Of the call with that ``id``."""

    id: int
    done: int
    total: int


def _dump(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


class Caller:
    """One connection to a daemon.  Ids of calls are numbers, ascending; ``hello`` is 0.

    ``dump`` and ``load`` are another JSON codec than the standard library's, where there is a faster one.
    """

    def __init__(
        self,
        make: MakeRecord,
        *,
        dump: Callable[[Any], bytes] = _dump,
        load: Callable[[bytes], Any] = json.loads,
    ) -> None:
        self._make = make
        self._dump = dump
        self._load = load
        self._machine = Machine(CLIENT)
        self._lines = Lines(None)
        self._ids = count(1)

    @property
    def state(self) -> str:
        """One of the states in docs/reference/wire.md."""
        return self._machine.state

    def hello(self, home: str | None, profile: str | None) -> bytes:
        """The first frame.  Its answer, with id 0, is an object with the fields of :class:`~memoryd.wire.Welcome`."""
        self._machine.step("> hello")
        params = {"protocol": SPOKEN, "client": f"memoryd {__version__}", "home": pack(home), "profile": pack(profile)}
        return self._frame({"jsonrpc": "2.0", "id": 0, "method": "hello", "params": params})

    def call(self, method: str, arguments: Mapping[str, Any], **common: Any) -> tuple[int, bytes]:
        """A call's id and frame.  ``common``: scope, event_id, retry, progress; those that are None are left out.

        Raises :class:`InvalidInput` for a value that is nested too deeply.
        """
        self._machine.step("> call")
        id = next(self._ids)
        return id, self._frame({"jsonrpc": "2.0", "id": id, "method": method, "params": _params(arguments, common)})

    def notify(self, method: str, arguments: Mapping[str, Any], **common: Any) -> bytes:
        """A frame that gets no answer."""
        self._machine.step("> call")
        return self._frame({"jsonrpc": "2.0", "method": method, "params": _params(arguments, common)})

    def _frame(self, message: Mapping[str, Any]) -> bytes:
        return self._dump(message) + b"\n"

    def receive(self, data: bytes) -> list[Answer | Progress]:
        """What came.  b"" is the end of the connection.  Raises :class:`ProtocolError` and :class:`ConnectionLost`."""
        if not data:
            self._machine.step("< end")
            raise ConnectionLost("the daemon ended the connection")
        found: list[Answer | Progress] = []
        for line in self._lines.feed(data):
            try:
                message = self._load(line)
            except (ValueError, RecursionError) as error:
                raise ProtocolError("the daemon sent what is no JSON") from error
            for one in message if isinstance(message, list) else [message]:
                self._read(one, found)
        return found

    def _read(self, message: Any, found: list[Answer | Progress]) -> None:
        match message:
            case {"method": "progress", "params": {"id": int(id), "done": int(done), "total": int(total)}}:
                self._machine.step("< progress")
                found.append(Progress(id, done, total))
            case {"method": "closing"}:
                self._machine.step("< closing")
            case {"id": None | int() as id, "error": dict() as error}:
                self._step_for("< refusal")
                found.append(Answer(id, error=decode_error(error)))
            case {"id": int(id), "result": value}:
                self._step_for("< welcome")
                found.append(Answer(id, unpack(value, self._make)))
            case _:
                raise ProtocolError("the daemon sent what is no answer")

    def _step_for(self, first: str) -> None:
        self._machine.step(first if self.state == "greeting" else "< answer")


def _params(arguments: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    params = {name: pack_rows(value) if name == "messages" else pack(value) for name, value in arguments.items()}
    params.update((name, pack(value)) for name, value in common.items() if value is not None)
    return params
