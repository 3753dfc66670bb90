"""The protocol on one connection: events of :mod:`memoryd.wire` become calls of a runtime.

Calls of one connection begin in the order in which they were sent.  A quick one is answered where it is read, all of one read in one
send; a slow one goes on in a task of its own.  Where a call has to wait before it can begin (its profile opens), reading waits too.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from memoryd.core import Accepted
from memoryd.errors import DaemonBusy, MemorydError
from memoryd.wire import Call, Connection, Ended, Event, Greeting, HookCall, Rejected

if TYPE_CHECKING:
    from memoryd.daemon._front import Front
    from memoryd.daemon._line import Line

__all__ = ["Conversation"]

T = TypeVar("T")

_LOCKED = 0.1  # seconds that a sender waits for a locked log between two reads
_ANY = 1 << 30  # the limit of calls in flight is ours: it means slow ones


class Conversation:
    """A :class:`~memoryd.daemon._line.Talk`."""

    def __init__(self, front: Front, line: Line) -> None:
        self._front = front
        self._line = line
        self._connection = Connection(frame=front.limits.frame_bytes, in_flight=_ANY)
        self._place: tuple[Path, str] | None = None
        self._waiting: deque[Call] = deque()
        self._starting = False
        self._settling = False
        self._running = 0

    @property
    def in_flight(self) -> int:
        """Calls that are not answered yet."""
        return self._running + len(self._waiting)

    @property
    def is_partial(self) -> bool:
        return self._connection.partial > 0 or self._connection.state == "new"

    def receive(self, data: bytes) -> bytes:
        connection = self._connection
        replies = [self._one(event) for event in connection.receive(data)]
        if connection.is_over:
            self._line.hang_up()
        return b"".join(replies)

    def closing(self) -> bytes:
        return self._connection.closing()

    def _one(self, event: Event) -> bytes:
        match event:
            case Call():
                return self._call(event)
            case Greeting():
                self._begin(self._greet, event)
            case HookCall():
                self._begin(self._hook, event)
            case Rejected(answer, error):
                if not answer and self._connection.state != "closed":
                    self._refused(error)
                return answer
            case Ended():
                pass
        return b""

    def _begin(self, work: Callable[[T], Awaitable[None]], event: T) -> None:
        """Work that has to be done before anything else is read."""
        self._running += 1
        self._line.hold()
        self._line.nursery.start_soon(work, event)

    # -- the first frame --------------------------------------------------------------------------------------------------------

    async def _greet(self, greeting: Greeting) -> None:
        try:
            self._place, welcome = await self._front.welcome(greeting)
            reply = self._connection.welcome(greeting, welcome)
        except Exception as error:  # noqa: BLE001 - the edge of a call: it is told to the client, and others go on
            reply = self._connection.refuse(greeting, self._told(error, "hello"))
        self._after(reply)

    async def _hook(self, call: HookCall) -> None:
        try:
            reply = await self._front.hook(call)
        except Exception as error:  # noqa: BLE001 - the same; without a reply the hook program does what it does without a daemon
            self._told(error, "hook")
            self._line.cut()
            return
        self._after(self._connection.reply(reply))

    def _after(self, reply: bytes) -> None:
        self._running -= 1
        self._line.send(reply)
        self._line.release()
        if self._connection.is_over:
            self._line.hang_up()

    # -- calls ------------------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> bytes:
        if call.method.quick and not self._starting:
            target = self._target(call)
            if target is not None:
                return self._quick(call, target)
        if not self._starting:
            self._starting = True
            self._line.hold()
            self._line.nursery.start_soon(self._start_waiting)
        self._waiting.append(call)
        return b""

    def _target(self, call: Call) -> Any:
        """Whose method it is, if that is at hand."""
        if call.method.of == "daemon":
            return self._front
        return None if self._place is None else self._front.pool.at_hand(*self._place)

    def _quick(self, call: Call, target: Any) -> bytes:
        try:
            result = call.run(target)
            if type(result) is Accepted and result.state == "held" and not self._settling:
                self._settling = True
                self._line.hold()
                self._line.nursery.start_soon(self._settle, target, result)
            return self._connection.answer(call, result)
        except Exception as error:  # noqa: BLE001 - the edge of a call
            return self._failed(call, error)

    async def _settle(self, target: Any, held: Accepted) -> None:
        """The log does not keep up, or is locked: what a client sends now waits in its socket, not in what can be held."""
        with suppress(MemorydError):
            await target.settled(held, _LOCKED)
        self._settling = False
        self._line.release()

    async def _start_waiting(self) -> None:
        """Let what waits begin, one after the other."""
        while self._waiting:
            call = self._waiting.popleft()
            if not call.method.quick and self._running >= self._front.limits.in_flight:
                problem = DaemonBusy(f"{self._running} slow calls of this connection are not answered yet")
                self._line.send(self._failed(call, problem))
            else:
                self._running += 1
                await self._line.nursery.start(self._slow, call)
        self._starting = False
        self._line.release()

    async def _slow(self, call: Call, *, task_status: trio.TaskStatus[None]) -> None:
        async with AsyncExitStack() as stack:
            try:
                target = await stack.enter_async_context(self._front.target(call, self._place))
            except Exception as error:  # noqa: BLE001 - the edge of a call
                reply = self._failed(call, error)
                task_status.started()
            else:
                task_status.started()  # no checkpoint from here to where the call appends its event: order is kept
                reply = await self._answered(call, target)
        self._running -= 1
        self._line.send(reply)
        if self._connection.is_over:
            self._line.hang_up()

    async def _answered(self, call: Call, target: Any) -> bytes:
        if call.method.quick:
            return self._quick(call, target)
        progress = _Progress(lambda done, total: self._line.send(self._connection.progress(call, done, total)))
        if call.wants_progress and call.method.name == "verify":
            call.arguments["on_progress"] = progress
        try:
            return self._connection.answer(call, await call.run(target))
        except Exception as error:  # noqa: BLE001 - the edge of a call
            return self._failed(call, error)
        finally:
            progress.over = True

    def _failed(self, call: Call, error: Exception) -> bytes:
        """Tell the client what a call raised.  One that sent a notification learns nothing, so the log says it."""
        self._told(error, call.method.name)
        if call.is_notification:
            self._refused(error)
        return self._connection.fail(call, error)

    def _refused(self, error: Exception) -> None:
        self._front.refused += 1
        self._front.log.warning("daemon.notification_refused", error=type(error).__name__)

    def _told(self, error: Exception, method: str) -> Exception:
        """``error``, after a bug was written down: frames only, because its message could quote a text."""
        if not isinstance(error, MemorydError):
            frames = "".join(traceback.format_tb(error.__traceback__))
            self._front.log.error("daemon.call_crashed", method=method, error=type(error).__name__, frames=frames)
        return error


class _Progress:
    """Says how far a call is, from the thread that does the work; nothing any more once the call is ``over``."""

    def __init__(self, say: Callable[[int, int], None]) -> None:
        self._say = say
        self._token = trio.lowlevel.current_trio_token()
        self.over = False

    def __call__(self, done: int, total: int) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._on_loop, done, total)

    def _on_loop(self, done: int, total: int) -> None:
        if not self.over:
            self._say(done, total)
