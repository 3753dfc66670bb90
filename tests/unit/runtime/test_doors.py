"""The three doors have the same methods with the same signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import memoryd
import memoryd.aio
import memoryd.blocking

ONLY_HERE = {
    memoryd.Runtime: {"last_flush"},  # what the other doors do by themselves at exit
    memoryd.blocking.Memory: {"close"},  # a runtime is closed by its block
    memoryd.aio.Memory: {"close"},
}


def methods(door: type) -> dict[str, Callable[..., Any]]:
    found = {name: method for name, method in inspect.getmembers(door, inspect.isfunction) if not name.startswith("_")}
    assert ONLY_HERE[door] <= set(found)
    return {name: method for name, method in found.items() if name not in ONLY_HERE[door]}


def test_the_doors_have_the_same_methods() -> None:
    assert set(methods(memoryd.Runtime)) == set(methods(memoryd.blocking.Memory)) == set(methods(memoryd.aio.Memory))


@pytest.mark.parametrize("name", sorted(methods(memoryd.Runtime)))
def test_a_method_has_one_signature(name: str) -> None:
    shapes = [shape(methods(door)[name]) for door in ONLY_HERE]
    assert shapes[0] == shapes[1] == shapes[2]


def shape(method: Callable[..., Any]) -> tuple[list[tuple[str, object, object]], str]:
    """Parameters with kind and default, and what comes back; spellings of types differ between modules (``When``, ``MemoryValue``)."""
    signature = inspect.signature(method)
    back = str(signature.return_annotation).replace("MemoryValue", "Memory")
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()], back


def test_blocking_methods_are_plain_and_asyncio_ones_are_awaited() -> None:
    assert not [name for name, method in methods(memoryd.blocking.Memory).items() if inspect.iscoroutinefunction(method)]
    assert not [name for name, method in methods(memoryd.aio.Memory).items() if not inspect.iscoroutinefunction(method)]
