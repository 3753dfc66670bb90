"""The scope travels in a context variable, and says what is missing."""

from __future__ import annotations

import contextvars

import pytest
import trio

import memoryd
from memoryd.core import Scope, current_scope
from memoryd.errors import ScopeConflict, ScopeMissing


def test_inner_scopes_add_to_outer_ones_and_end() -> None:
    assert current_scope() == Scope()
    with memoryd.scope(user="ada", agent="a1"):
        with memoryd.scope(session="s1", agent="a2"):
            assert current_scope() == Scope(user="ada", session="s1", agent="a2")
        assert current_scope() == Scope(user="ada", agent="a1")
    assert current_scope() == Scope()


def test_what_is_missing_names_the_remedy() -> None:
    with pytest.raises(ScopeMissing, match=r"memoryd\.scope\(user="):
        Scope().need_user()
    with pytest.raises(ScopeMissing, match=r"memoryd\.scope\(session="):
        Scope(user="u").need_session()


def test_another_profile_is_a_conflict() -> None:
    assert Scope(user="u").checked_for("p") == Scope(user="u")
    assert Scope(profile="p", user="u").checked_for("p").user == "u"
    with pytest.raises(ScopeConflict):
        Scope(profile="other").checked_for("p")


async def test_tasks_do_not_share_a_scope() -> None:
    seen: dict[str, str | None] = {}

    async def child(name: str) -> None:
        with memoryd.scope(user=name):
            await trio.lowlevel.checkpoint()
            seen[name] = current_scope().user

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(child, name)
    assert seen == {"a": "a", "b": "b", "c": "c"}
    assert current_scope() == Scope()


def test_an_empty_context_has_an_empty_scope() -> None:
    with memoryd.scope(user="ada"):
        assert contextvars.Context().run(current_scope) == Scope()
