"""Measuring backends: 100 points each, and beside them relevance, reliability and cost.  Its names load when first used.

It sees a backend as the runtime does, through its plug-in's name and the port, in a home that is gone afterwards.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.evaluate._dataset import Conversation as Conversation
    from memoryd.evaluate._dataset import Question as Question
    from memoryd.evaluate._dataset import load_dataset as load_dataset
    from memoryd.evaluate._dataset import read_dataset as read_dataset
    from memoryd.evaluate._run import evaluate as evaluate

_HOMES = {
    "Conversation": "_dataset",
    "Question": "_dataset",
    "load_dataset": "_dataset",
    "read_dataset": "_dataset",
    "evaluate": "_run",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.evaluate' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.evaluate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
