"""Whose turn it is: what the host says at initialization and for each turn, as scopes.  Pure.

A person of a platform is ``platform:id``, so that two people never become one; where the host names nobody it is the user of the
settings.  The thread is the host's session; the chat, else the working directory, is the label *workspace*.  What no person said (cron
jobs, subagents, flushes, bots) is kept under ``user/context``, where recall for the user does not look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from memoryd.core import MAX_NAME, Scope
from memoryd_hermes._settings import Settings

__all__ = ["CONTEXTS", "Identity", "fitting_name", "identity_of"]

CONTEXTS = ("cron", "subagent", "flush")
_PRIMARY = "primary"
_BOT = "bot"
_NAMED_BY_USER = frozenset({"", "user", "manual", "explicit"})
_TOLD = ("chat_id", "chat_name", "chat_type", "thread_id", "user_name", "parent_session_id")


@attrs.frozen(slots=True)
class Identity:
    """One instance's people and places.  ``named`` says whether the host named the user; ``context`` is empty for a user's own turns."""

    user: str
    named: bool
    platform: str
    agent: str
    workspace: str
    context: str
    automation: str
    told: Mapping[str, str] = attrs.field(repr=False)

    @property
    def writes_turns(self) -> bool:
        return not self.context or self.automation != "off"

    def reading(self, session: str) -> Scope:
        """The scope that recall looks in: the user's own memory."""
        return Scope(user=self.user, session=session or None)

    def writing(self, session: str, context: str = "") -> Scope:
        """The scope of what is recorded now, or of something that ``context`` said."""
        label = context or self.context
        user = fitting_name(f"{self.user}/{label}") if label and self.automation != "same" else self.user
        return Scope(
            user=user,
            session=session or None,
            agent=label or self.agent or None,
            workspace=self.workspace or None,
            platform=self.platform or None,
        )

    def belonging_to(self, user: str) -> Identity:
        """The same place, with a user that is known from earlier."""
        return attrs.evolve(self, user=user, named=True)

    def of(self, author_id: str, is_bot: bool) -> Identity:
        """The same place, with the turn's author as its user."""
        if not author_id and not is_bot:
            return self
        user = _person(self.platform, author_id) if author_id else self.user
        return attrs.evolve(self, user=user, named=self.named or bool(author_id), context=self.context or (_BOT if is_bot else ""))


def identity_of(settings: Settings, given: Mapping[str, Any], cwd: str) -> Identity:
    """The identity that ``initialize`` was told; every field may be missing."""
    platform = _text(given, "platform")
    user_id = _text(given, "user_id") or _text(given, "user_id_alt")
    context = _text(given, "agent_context").lower()
    told = {name: value for name in _TOLD if (value := _text(given, name))}
    if _text(given, "session_title_source").lower() in _NAMED_BY_USER and (title := _text(given, "session_title")):
        told["title"] = title  # one that a model or a rule made says nothing of who or where
    chat = _text(given, "gateway_session_key")
    return Identity(
        user=_person(platform, user_id) if user_id else fitting_name(settings.user),
        named=bool(user_id),
        platform=platform,
        agent=_text(given, "agent_identity"),
        workspace=fitting_name(chat or cwd or _text(given, "agent_workspace")),
        context="" if context in ("", _PRIMARY) else context,
        automation=settings.automation,
        told=told | ({"chat": chat} if chat else {}) | ({"cwd": cwd} if cwd else {}),
    )


def _person(platform: str, user_id: str) -> str:
    """Two people never have one name: what joins the parts is encoded inside them."""
    where = (platform or "host").replace("%", "%25").replace(":", "%3A")
    return fitting_name(f"{where}:{user_id.replace('%', '%25').replace('/', '%2F')}")


def fitting_name(text: str) -> str:
    """``text`` where it can be a name; a longer one by its beginning and its digest."""
    if len(text) <= MAX_NAME:
        return text
    return f"{text[:400]}~{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
