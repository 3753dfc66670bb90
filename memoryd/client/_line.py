"""Turns on their way to the daemon: in order, each acknowledged, none forgotten while this process lives.  Standard library only.

A turn is sent where it is given, and its acknowledgement waited for as long as the log itself may make a caller wait (5 ms).  Where
none came, the turn is *held*: a thread sends it, and all that come after it, as often as it takes, with its event id, so that the daemon
takes it once.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from memoryd.client._attempts import AWAY, is_outage, new_event_id
from memoryd.client._link import Link
from memoryd.errors import ClosedError, DeadlineExceeded, JournalUnavailable, MemorydError, NotDurable

__all__ = ["Held", "Line"]

A = TypeVar("A")

_PATIENCE = 0.005  # seconds: the same that the log lets a caller wait for its lock
_WINDOW = 128  # calls on their way at once; their answers fit into a socket's buffer
_ANSWER = 5.0
_ASKED = 2.0
_FIRST, _LAST = 0.02, 1.0  # seconds between tries to connect
_REMEMBERED = 4096  # results of held events, for whoever waits
_MOST = 16 << 20  # bytes held
_AT_EXIT = 2.0


def _is_passing(error: MemorydError) -> bool:
    """Whether the same call may succeed a little later without anybody doing anything."""
    return is_outage(error) or isinstance(error, DeadlineExceeded)


class Held:
    """A call that makes an event and was not acknowledged yet.  ``after``: the event's seq, if it has one, is above that."""

    __slots__ = ("after", "arguments", "event_id", "method", "scope", "size", "tries")

    def __init__(self, method: str, arguments: Mapping[str, Any], scope: Mapping[str, Any], after: int) -> None:
        self.method = method
        self.arguments = arguments
        self.scope = scope
        self.event_id = new_event_id()
        self.after = after
        self.tries = 0
        self.size = 200 + sum(len(value) for value in arguments.values() if isinstance(value, str))

    def common(self) -> dict[str, Any]:
        """What goes beside the arguments, this time."""
        self.tries += 1
        return {"scope": self.scope or None, "event_id": self.event_id, "retry": self.after if self.tries > 1 else None}


class Line(Generic[A]):
    """``connect(timeout)`` opens a link; ``accepted(state, seq, event_id, reason)`` builds the answer.  Any thread may call.

    ``on_away()`` is called on the thread that sends, again and again while the daemon is away for longer than a restart takes.
    The link belongs to the caller that has the lock while nothing is held, else to the thread that sends.
    """

    def __init__(
        self, connect: Callable[[float], Link], accepted: Callable[..., A], *, on_away: Callable[[], None] | None = None, most: int = _MOST
    ) -> None:
        self._connect = connect
        self._on_away = on_away
        self._accepted = accepted
        self._most = most
        self._lock = threading.Condition()
        self._link: Link | None = None
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._bytes = 0
        self._results: OrderedDict[str, A | MemorydError] = OrderedDict()
        self._unheard: dict[str, MemorydError] = {}
        self._sender: threading.Thread | None = None
        self._closed = False
        self._hurry = threading.Event()
        self.last_seq = 0
        self.away_since: float | None = None

    def open(self, timeout: float) -> Mapping[str, Any]:
        """Connect now, and what the daemon's welcome says.  Raises as :class:`Link` does."""
        with self._lock:
            self._link = self._connect(timeout)
            return self._link.welcome

    @property
    def held(self) -> int:
        """How many events are not acknowledged."""
        return len(self._held)

    @property
    def note(self) -> str:
        """The same, for a status."""
        return f"{self.held} turns are held in the calling process: the daemon did not acknowledge them yet"

    # -- giving -----------------------------------------------------------------------------------------------------------------

    def accept(self, method: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]) -> A:
        """Send, and wait 5 ms: the daemon's answer, or *held*.  While something is held, the next is held at once.

        Raises what the method raises, :class:`ClosedError`, and :class:`JournalUnavailable` where too much is held.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("this client is closed: open it again")
            item = Held(method, arguments, scope, self.last_seq)
            if not self._held:
                answer = self._at_once(item)
                if answer is not None:
                    return answer
            return self._hold(item)

    def _at_once(self, item: Held) -> A | None:
        until = time.monotonic() + _PATIENCE
        try:
            if self._link is None or not self._link.is_usable:
                self._drop_link()
                self._link = self._connect(_PATIENCE)
            answer: A = self._link.call(item.method, item.arguments, lambda: until, **item.common())
        except DeadlineExceeded:
            return None  # a late answer is passed over
        except MemorydError as error:
            if not is_outage(error):
                raise
            self._drop_link()
            return None
        self._noted(answer)
        return answer

    def _noted(self, answer: Any) -> None:
        self.last_seq = max(self.last_seq, getattr(answer, "seq", None) or 0)

    def _hold(self, item: Held) -> A:
        if self._bytes + item.size > self._most:
            raise JournalUnavailable("held-full", "not recorded (held-full): the daemon is away and what can be held in memory is full")
        self._held[item.event_id] = item
        self._bytes += item.size
        if self.away_since is None:
            self.away_since = time.monotonic()
        if self._sender is None and not self._closed:
            self._sender = threading.Thread(target=self._send_all, name="memoryd:held", daemon=True)
            self._sender.start()
            atexit.register(self.wait, _AT_EXIT)
        return self._accepted("held", None, item.event_id, "daemon")

    def tell(self, method: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]) -> None:
        """Send what needs no answer, and is of no use later."""
        with self._lock:
            if self._closed:
                raise ClosedError("this client is closed: open it again")
            if self._held or self._link is None or not self._link.is_usable:
                return
            try:
                self._link.notify(method, arguments, time.monotonic() + _PATIENCE, scope=scope or None)
            except MemorydError:
                self._drop_link()

    def ask(self, method: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]) -> Any:
        """The answer of a quick method, over a connection of its own, within 2 s."""
        until = time.monotonic() + _ASKED
        link = self._connect(_ASKED)
        try:
            return link.call(method, arguments, lambda: until, scope=scope or None)
        finally:
            link.close()

    def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    # -- the thread that sends what is held -----------------------------------------------------------------------------------------

    def _send_all(self) -> None:
        delay = _FIRST
        while True:
            with self._lock:
                if self._closed or not self._held:
                    self._sender = None
                    self.away_since = None if not self._held else self.away_since
                    atexit.unregister(self.wait)
                    self._lock.notify_all()
                    return
            try:
                if self._link is None or not self._link.is_usable:
                    self._drop_link()
                    self._link = self._connect(AWAY)
                self._send_some(self._link)
                delay = _FIRST
            except MemorydError:
                self._drop_link()
                self._tell_away()
                self._hurry.wait(delay)
                delay = min(2 * delay, _LAST)

    def _tell_away(self) -> None:
        since = self.away_since
        if self._on_away is not None and since is not None and time.monotonic() - since > AWAY:
            self._on_away()

    def _send_some(self, link: Link) -> None:
        """One window: sent in one go, answered one by one."""
        with self._lock:
            items = [item for _, item in zip(range(_WINDOW), self._held.values(), strict=False)]
        until = time.monotonic() + AWAY
        sent = {}
        for item in items:
            try:
                sent[link.start(item.method, item.arguments, until, **item.common())] = item
            except MemorydError as error:
                if _is_passing(error):
                    raise
                self.settle_as(item, error)  # too large, or nested too deeply
        while sent:
            for answer in link.answers(until):
                item_sent = sent.pop(answer.id, None) if answer.id is not None else None
                if answer.error is not None and _is_passing(answer.error):
                    raise answer.error
                if item_sent is not None:
                    self.settle_as(item_sent, answer.error if answer.error is not None else answer.value)

    def settle_as(self, item: Held, result: A | MemorydError) -> None:
        """``result`` is what became of ``item``."""
        with self._lock:
            if self._held.pop(item.event_id, None) is not None:
                self._bytes -= item.size
            self._noted(result)
            self._results[item.event_id] = result
            if isinstance(result, MemorydError):
                self._unheard[item.event_id] = result
            while len(self._results) > _REMEMBERED:
                self._results.popitem(last=False)
            self._lock.notify_all()

    # -- waiting ----------------------------------------------------------------------------------------------------------------

    def result(self, event_id: str) -> A | None:
        """What became of a held event, or None where that is not known yet (or not ours).  Raises what the daemon answered."""
        found = self._results.get(event_id)
        if isinstance(found, MemorydError):
            self._unheard.pop(event_id, None)
            raise found
        return found

    def is_held(self, event_id: str) -> bool:
        return event_id in self._held

    def settle(self, event_id: str, timeout: float) -> A | None:
        """Wait for :meth:`result`."""
        with self._lock:
            self._lock.wait_for(lambda: event_id not in self._held, timeout)
        return self.result(event_id)

    def wait(self, timeout: float) -> bool:
        """Wait until nothing is held; whether that is so."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._held, timeout)

    # -- the end ----------------------------------------------------------------------------------------------------------------

    def check_kept(self, left: int, why: str) -> None:
        """At the end: raises :class:`NotDurable` where events that were held are not kept and nobody has heard of it."""
        if left:
            raise NotDurable(f"{left} turns were not recorded: {why}")
        if self._unheard:
            first = next(iter(self._unheard.values()))
            raise NotDurable(f"{len(self._unheard)} turns were held and then refused: {first}") from first

    def close(self, timeout: float) -> list[Held]:
        """Wait for what is held, then end; what is left, in order."""
        with self._lock:
            if self._closed:
                return self.left()
        self.wait(timeout)
        with self._lock:
            self._closed = True
            sender = self._sender
        self._hurry.set()
        if sender is not None and sender is not threading.current_thread():
            sender.join(_ANSWER)
        with self._lock:
            self._drop_link()
            return self.left()

    def left(self) -> list[Held]:
        """What is held, in order; after a close it is for who keeps it elsewhere, and says so with :meth:`settle_as`."""
        return list(self._held.values())

    def keep(self, method: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]) -> A:
        """Hold an event after the close too, while it is kept elsewhere."""
        with self._lock:
            return self._hold(Held(method, arguments, scope, self.last_seq))

    def let_go(self) -> None:
        """In a forked child, where no thread of the parent's is: close the inherited descriptor.  What is held is the parent's."""
        self._drop_link()
        atexit.unregister(self.wait)
