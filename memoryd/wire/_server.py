"""The daemon's side of a connection: bytes in, events out; values in, bytes out.

    connection = Connection()
    for event in connection.receive(data):     # data b"" is the end of input
        match event:
            case Greeting(): out += connection.welcome(event, welcome)          # or connection.refuse(event, error)
            case Call(): out += connection.answer(event, event.run(runtime))    # or connection.fail(event, error)
            case HookCall(): out += connection.reply(HookReply(...))
            case Rejected(): out += event.answer                                # the connection says so itself
            case Ended(): ...                                                   # what is in flight may still be answered
    send out in one go; when connection.is_over, close

Bytes that are empty need not be sent.  Nothing here raises for what a client sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
from msgspec import UNSET

from memoryd.core import GivenEvent, Scope, bind_event, bind_scope
from memoryd.errors import DaemonBusy, DaemonUnavailable, InvalidInput, MemorydError, ProtocolError, ProtocolMismatch
from memoryd.wire._coding import Message, decode, dump, has_tags, make_record, read_message, to_message
from memoryd.wire._faults import INVALID, PARSE, UNKNOWN_METHOD, encode_error
from memoryd.wire._hook import HookCall, HookCallReader, HookReply
from memoryd.wire._lines import MAX_FRAME, Lines
from memoryd.wire._methods import COMMON, METHODS, Method
from memoryd.wire._states import SERVER, Machine
from memoryd.wire._values import pack, unpack
from memoryd.wire._version import Welcome, common_version

__all__ = ["Call", "Connection", "Ended", "Event", "Greeting", "Rejected"]

MAX_IN_FLIGHT = 256
_COMMON = frozenset(param.name for param in COMMON)
_PARAMS = {name: (method.names, method.required) for name, method in METHODS.items()}
_NO_SCOPE = Scope()


@attrs.frozen(slots=True)
class Greeting:
    """A client said ``hello`` in a version of the protocol that this daemon speaks.  ``profile`` None: it wants the daemon's own
    methods only; ``home`` None: the daemon's default."""

    id: int | str | None
    version: int
    client: str
    home: str | None
    profile: str | None


@attrs.define(slots=True, eq=False)
class Call:
    """One call, its parameters checked by name, its values as Python has them.

    ``id`` is None for a notification, which is never answered.  ``wants_progress``: see :meth:`Connection.progress`.
    """

    id: int | str | None
    method: Method
    arguments: dict[str, Any]
    scope: Scope
    given: GivenEvent | None
    wants_progress: bool
    is_notification: bool
    _batch: _Batch | None = None

    def run(self, target: Any) -> Any:
        """``target``'s method of that name, under the call's scope and event id.  The result, or for a slow method what to await."""
        work = getattr(target, self.method.name)
        if not self.method.quick:
            return self._awaited(work)
        with bind_scope(self.scope), bind_event(self.given):
            return work(**self.arguments)

    async def _awaited(self, work: Callable[..., Any]) -> Any:
        with bind_scope(self.scope), bind_event(self.given):
            return await work(**self.arguments)


@attrs.frozen(slots=True)
class Rejected:
    """Something that was no call.  ``answer`` says so to the client (empty for a wrong notification); ``error`` is for the log."""

    answer: bytes
    error: MemorydError


@attrs.frozen(slots=True)
class Ended:
    """The client will send no more."""


Event: TypeAlias = Greeting | Call | HookCall | Rejected | Ended


class _Batch:
    """Answers of one batch, which go out together."""

    __slots__ = ("_answers", "_missing", "_sealed")

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._missing = 0
        self._sealed = False

    def expect(self) -> None:
        self._missing += 1

    def add(self, answer: bytes) -> bytes:
        self._missing -= 1
        self._answers.append(answer.rstrip(b"\n"))
        return self._whole()

    def seal(self) -> bytes:
        """All of it was read."""
        self._sealed = True
        return self._whole()

    def _whole(self) -> bytes:
        if not self._sealed or self._missing or not self._answers:
            return b""
        return b"[" + b",".join(self._answers) + b"]\n"


class Connection:
    """One client's connection.  ``frame`` bounds what a client may send in one line, ``in_flight`` its unanswered calls."""

    def __init__(self, *, frame: int = MAX_FRAME, in_flight: int = MAX_IN_FLIGHT) -> None:
        self._machine = Machine(SERVER)
        self._lines = Lines(frame)
        self._frame = frame
        self._hook: HookCallReader | None = None
        self._most = in_flight
        self.open: set[int | str | None] = set()
        self._scopes: tuple[Any, Scope] = ({}, _NO_SCOPE)
        self.unanswered = 0

    @property
    def state(self) -> str:
        """One of the states in docs/reference/wire.md."""
        return self._machine.state

    @property
    def is_over(self) -> bool:
        """Nothing will be sent any more: close the connection."""
        return self.state == "closed" or (self.state == "ended" and not self.unanswered)

    @property
    def partial(self) -> int:
        """How many bytes of an unfinished frame wait for their rest."""
        return self._lines.partial

    # -- what comes in --------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """The events of ``data``; b"" says that the client ended its side.  Never raises."""
        if self.state in ("closed", "ended"):
            return []
        if self.state == "new" and self._hook is None and data[:1] == b"H":
            self._hook = HookCallReader()
        if not data:
            return self._ended()
        try:
            if self._hook is not None:
                return self._hook_frame(data)
        except ProtocolError as error:
            return [self._garbage(error)]
        events: list[Event] = []
        for line in self._lines.feed(data):
            self._line(line, events)
            if self.state == "closed":
                return events
        if self._lines.overflow:
            events.append(self._garbage(ProtocolError(f"a frame of more than {self._frame} bytes")))
        return events

    def _ended(self) -> list[Event]:
        if self._machine.may("< end"):
            self._machine.step("< end")
        return [Ended()]

    def _hook_frame(self, data: bytes) -> list[Event]:
        assert self._hook is not None
        if self.state != "new":
            raise ProtocolError("bytes after the hook frame")
        call = self._hook.receive(data)
        if call is None:
            return []
        self._machine.step("< hook")
        return [call]

    def _garbage(self, error: ProtocolError, id: Any = None, code: int = PARSE) -> Rejected:
        """An error that costs the connection."""
        answer = b"" if self._hook is not None else _error_line(id, error, code)
        self._machine.step("< garbage")
        return Rejected(answer, error)

    def _line(self, line: bytes, events: list[Event]) -> None:
        message = read_message(line)
        if message is not None:
            events.append(self._event(message, has_tags(line), None))
            return
        try:
            data = decode(line)
        except ProtocolError as error:
            events.append(self._garbage(error))
            return
        try:
            if isinstance(data, list):
                self._read_batch(data, has_tags(line), events)
            else:
                events.append(self._event(to_message(data), has_tags(line), None))
        except ProtocolError as error:
            events.append(self._garbage(error, code=INVALID))

    def _read_batch(self, items: list[Any], tags: bool, events: list[Event]) -> None:
        if not items or not self._machine.may("< call"):
            raise ProtocolError("a batch is empty or comes before 'hello' was answered")
        batch = _Batch()
        for item in items:
            try:
                events.append(self._event(to_message(item), tags, batch))
            except ProtocolError as error:
                batch.expect()
                events.append(Rejected(batch.add(_error_line(None, error, INVALID)), error))
        rest = batch.seal()
        if rest:
            last = events[-1]
            events[-1] = Rejected(rest, last.error) if isinstance(last, Rejected) else last
            assert isinstance(events[-1], Rejected), "every item was rejected"

    def _event(self, message: Message, tags: bool, batch: _Batch | None) -> Event:
        if message.method == "hello" and batch is None:
            return self._greeting(message)
        if not self._machine.may("< call"):
            return self._garbage(ProtocolError(f"{message.method[:40]!r} before 'hello' was answered"), _id(message), INVALID)
        try:
            return self._call(message, tags, batch)
        except MemorydError as error:
            return self._rejected(message, error, batch)

    def _greeting(self, message: Message) -> Event:
        if not self._machine.may("< hello"):
            return self._garbage(ProtocolError("'hello' a second time"), _id(message), INVALID)
        try:
            version = common_version(message.params.get("protocol"))
            client, home, profile = (_optional_text(message.params, name) for name in ("client", "home", "profile"))
        except (ProtocolError, ProtocolMismatch) as error:
            answer = _error_line(_id(message), error)
            self._machine.step("< garbage")
            return Rejected(answer, error)
        self._machine.step("< hello")
        return Greeting(_id(message), version, client or "", home, profile)

    def _call(self, message: Message, tags: bool, batch: _Batch | None) -> Call:
        method = METHODS.get(message.method)
        if method is None:
            raise _Numbered(UNKNOWN_METHOD, f"this daemon has no method {message.method[:40]!r}")
        params = unpack(message.params, make_record) if tags else message.params
        is_notification = message.id is UNSET
        call = Call(
            _id(message), method, _arguments(method, params), self._scope(params.get("scope")), _given(method, params),
            params.get("progress") is True, is_notification, batch,
        )  # fmt: skip
        self._admit(call)
        return call

    def _admit(self, call: Call) -> None:
        if self.state == "closing":
            raise DaemonUnavailable("the daemon is ending: try again when it is back")
        if call.is_notification:
            return
        if self.unanswered >= self._most:
            raise DaemonBusy(f"{self._most} calls of this connection are not answered yet; wait for some")
        if call.id in self.open:
            raise ProtocolError("a call with that id is not answered yet")
        self._machine.step("< call")
        self.open.add(call.id)
        self.unanswered += 1
        if call._batch is not None:
            call._batch.expect()

    def _rejected(self, message: Message, error: MemorydError, batch: _Batch | None) -> Rejected:
        if message.id is UNSET:
            return Rejected(b"", error)
        answer = _error_line(message.id, error, error.code if isinstance(error, _Numbered) else None)
        if batch is None:
            return Rejected(answer, error)
        batch.expect()
        return Rejected(batch.add(answer), error)

    def _scope(self, given: Any) -> Scope:
        if given is None:
            return _NO_SCOPE
        known, scope = self._scopes
        if given != known or type(given) is not dict:
            scope = _scope(given)
            self._scopes = (given, scope)
        return scope

    # -- what goes out ----------------------------------------------------------------------------------------------------------

    def welcome(self, greeting: Greeting, welcome: Welcome) -> bytes:
        """The answer to ``hello``."""
        self._machine.step("> welcome")
        return _result_line(greeting.id, {"protocol": greeting.version, **welcome.to_json()})

    def refuse(self, greeting: Greeting, error: BaseException) -> bytes:
        """The profile cannot be opened; the connection is over after it."""
        self._machine.step("> refusal")
        return _error_line(greeting.id, error)

    def answer(self, call: Call, result: Any) -> bytes:
        """The result of a call."""
        return self._answer(call, _result_line(call.id, pack(result))) if not call.is_notification else b""

    def fail(self, call: Call, error: BaseException) -> bytes:
        """What a call raised.  Of an error that is none of memoryd's only the class is told."""
        return self._answer(call, _error_line(call.id, error)) if not call.is_notification else b""

    def _answer(self, call: Call, line: bytes) -> bytes:
        self._machine.step("> answer")
        self.open.discard(call.id)
        self.unanswered -= 1
        if self.state == "closed":
            return b""
        return line if call._batch is None else call._batch.add(line)

    def progress(self, call: Call, done: int, total: int) -> bytes:
        """A notification before the answer, for a call that wants it; nothing where it was answered meanwhile."""
        if not call.wants_progress or call.id not in self.open or self.state == "closed":
            return b""
        self._machine.step("> progress")
        return _notification("progress", {"id": call.id, "done": done, "total": total})

    def closing(self) -> bytes:
        """The daemon is ending: new calls are refused from now on."""
        if not self._machine.may("> closing"):
            return b""
        self._machine.step("> closing")
        return _notification("closing", {}) if self.state == "closing" else b""

    def reply(self, reply: HookReply) -> bytes:
        """The reply to a hook frame; the connection is over after it."""
        self._machine.step("> reply")
        return reply.encode()


class _Numbered(ProtocolError):
    """An error with a code of JSON-RPC's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _id(message: Message) -> int | str | None:
    return None if message.id is UNSET else message.id


def _arguments(method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in params.items() if name not in _COMMON}
    known, required = _PARAMS[method.name]
    names = arguments.keys()
    if not names <= known:
        unknown = sorted(names - known)[0]
        raise InvalidInput("params", f"{method.name} has no parameter {unknown[:40]!r}")
    if not required <= names:
        raise InvalidInput(sorted(required - names)[0], f"{method.name} needs it")
    return arguments


def _scope(given: Any) -> Scope:
    try:
        return Scope(**given)
    except TypeError:
        raise InvalidInput("scope", "expected an object with the fields of a scope") from None


def _given(method: Method, params: Mapping[str, Any]) -> GivenEvent | None:
    event_id, after = params.get("event_id"), params.get("retry")
    if event_id is None or method.again != "by event id":
        return None
    try:
        raw = bytes.fromhex(event_id)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != 16:
        raise InvalidInput("event_id", "expected 32 hexadecimal digits")
    if after is not None and (type(after) is not int or after < 0):
        raise InvalidInput("retry", "expected a whole number of at least 0")
    return GivenEvent(raw, after)


def _optional_text(params: Mapping[str, Any], name: str) -> str | None:
    value = unpack(params.get(name), make_record)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"hello: {name} is no text")
    return value


def _result_line(id: int | str | None, result: Any) -> bytes:
    return dump({"jsonrpc": "2.0", "id": id, "result": result}) + b"\n"


def _error_line(id: int | str | None, error: BaseException, code: int | None = None) -> bytes:
    return dump({"jsonrpc": "2.0", "id": id, "error": encode_error(error, code)}) + b"\n"


def _notification(method: str, params: Mapping[str, Any]) -> bytes:
    return dump({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"
