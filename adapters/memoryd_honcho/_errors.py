"""The SDK's errors in memoryd's words.  A message names class, status and field, never a body: a 422 echoes the user's text."""

from __future__ import annotations

import httpx
from honcho import HonchoError
from honcho.http import exceptions
from pydantic import ValidationError

from memoryd.errors import BackendAmbiguous, BackendError, BackendPermanent, BackendTransient

__all__ = ["CALL_ERRORS", "BadAnswer", "NotThere", "ServerFault", "mapped"]

CALL_ERRORS = (HonchoError, ValidationError, ValueError, httpx.HTTPError, TypeError, AttributeError, KeyError)
"""What a call of the SDK may raise; the last three for an answer of another form, which it takes apart without looking."""

_REJECTED = frozenset({400, 413, 422})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_BEHIND_A_PROXY = frozenset({502, 504})


class ServerFault(BackendTransient):
    """The server answered 500: an outage of its database, a lock, or this input for ever."""


class BadAnswer(ValueError):
    """The server's answer has not the form of one; stands for the SDK's own error, which would print the answer."""


class NotThere(BackendTransient):
    """404: the object is gone, or the address is not Honcho's."""


def mapped(error: Exception, *, repeatable: bool, retry_after: float | None = None) -> BackendError:
    """``error`` as transient, permanent or ambiguous.  ``repeatable``: sending the same again changes nothing, so a lost answer is no
    doubt.  Its ``__cause__`` is set, and stripped of texts: tracebacks print it."""
    if isinstance(error, HonchoError) and error.status:
        found = _answered(error, repeatable, retry_after)
        _strip(error, str(found))
    else:
        found = _unanswered(error, repeatable)
    found.__cause__ = error if isinstance(error, (HonchoError, httpx.HTTPError)) else BadAnswer(type(error).__name__)
    return found


def _unanswered(error: Exception, repeatable: bool) -> BackendError:
    name = type(error).__name__
    if isinstance(error, HonchoError) and isinstance(error.__cause__, _NOT_SENT):
        return BackendTransient(f"Honcho cannot be reached ({type(error.__cause__).__name__})")
    if repeatable:
        return BackendTransient(f"no answer of Honcho ({name})")
    return BackendAmbiguous(f"the answer of Honcho was lost ({name})")


def _answered(error: HonchoError, repeatable: bool, retry_after: float | None) -> BackendError:
    status = error.status
    said = f"Honcho answered {status} ({type(error).__name__})"
    if status in (401, 403):
        return BackendTransient(f"{said}: it does not accept HONCHO_API_KEY for this workspace")
    if status in _REJECTED:
        return BackendPermanent(said + _fields(error))
    if status == 404:
        return NotThere(said)
    if status in _BEHIND_A_PROXY and not repeatable:
        return BackendAmbiguous(said)
    if status == 500:
        return ServerFault(said)
    wait = error.retry_after if isinstance(error, exceptions.RateLimitError) else None
    return BackendTransient(said, retry_after=wait if wait is not None else retry_after)


def _fields(error: HonchoError) -> str:
    """Which fields a 422 means, and how: their places and the rule, without the values."""
    detail = error.body.get("detail") if isinstance(error.body, dict) else None
    if not isinstance(detail, list):
        return ""
    rows = [row for row in detail if isinstance(row, dict)]
    named = (f"{'.'.join(map(str, row.get('loc', ())))[:80]} {str(row.get('type', ''))[:40]}" for row in rows[:3])
    return ": " + ", ".join(named)


def _strip(error: HonchoError, said: str) -> None:
    error.body = None
    error.message = said
    error.args = (said,)
