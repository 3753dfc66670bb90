"""The table of methods is the runtime's own public methods."""

from __future__ import annotations

import inspect

import pytest

import memoryd
from memoryd import errors
from memoryd.core import Scope
from memoryd.wire import CODES, COMMON, METHODS, SCOPE_FIELDS, decode_error, encode_error

ONLY_HERE = {"last_flush"}  # what a program does at its own exit
CALLBACKS = {"on_progress"}  # they travel as notifications
RUNTIME = {
    name: method
    for name, method in inspect.getmembers(memoryd.Runtime, inspect.isfunction)
    if not name.startswith("_") and name not in ONLY_HERE
}


def test_every_method_of_the_runtime_is_in_the_table() -> None:
    assert {name for name, method in METHODS.items() if method.of == "profile"} == set(RUNTIME)


@pytest.mark.parametrize("name", sorted(RUNTIME))
def test_parameters_and_kind_are_the_runtimes(name: str) -> None:
    method, found = METHODS[name], inspect.signature(RUNTIME[name])
    parameters = [p for p in found.parameters.values() if p.name not in {"self", *CALLBACKS}]
    assert [p.name for p in method.params] == [p.name for p in parameters]
    assert [p.required for p in method.params] == [p.default is p.empty for p in parameters]
    assert method.quick == (not inspect.iscoroutinefunction(RUNTIME[name]))
    result = {"null": "None", "text": "str", "whole number": "int"}.get(method.result, method.result)
    result = result.replace("array of text", "list[str]").replace(" or null", " | None")
    assert (f"list[{result[9:]}]" if result.startswith("array of ") else result) == found.return_annotation


def test_no_method_has_a_parameter_that_all_calls_have() -> None:
    taken = {param.name for param in COMMON}
    assert not [method.name for method in METHODS.values() if method.names & taken]


def test_deadlines_are_settings_with_their_defaults() -> None:
    defaults = memoryd.Config().deadlines
    for method in METHODS.values():
        if method.deadline not in ("", "timeout"):
            assert getattr(defaults, method.deadline) == method.seconds, method.name


def test_the_fields_of_a_scope_are_the_scopes() -> None:
    assert tuple(field.name for field in Scope.__attrs_attrs__) == SCOPE_FIELDS  # type: ignore[attr-defined]


EXAMPLES = [
    errors.InvalidInput("key", "must not be empty"),
    errors.InvalidInput("key", "half a pair \ud800"),
    errors.StoreFull("no room", path="/x/log.db"),
    errors.StoreBroken("no disk"),
    errors.JournalUnavailable("quota", "not recorded"),
    errors.CheckpointBlocked("locked", "the archive is locked", "end the other program"),
    errors.BackendTransient("later", retry_after=1.5),
    *(kind("what is wrong") for kind in CODES.values() if kind.__init__ is errors.MemorydError.__init__),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was_raised(error: errors.MemorydError) -> None:
    again = decode_error(encode_error(error))
    assert (type(again), str(again), vars(again), again.retryable) == (type(error), str(error), vars(error), error.retryable)


def test_every_error_has_a_code() -> None:
    assert set(CODES.values()) == {getattr(errors, name) for name in errors.__all__}


def test_of_a_foreign_error_only_the_class_is_told() -> None:
    found = encode_error(ZeroDivisionError("a secret"))
    assert "secret" not in str(found) and "ZeroDivisionError" in found["message"]
    assert type(decode_error(found)) is errors.DaemonFault


def test_an_adapters_own_class_travels_as_its_base() -> None:
    class Mine(errors.BackendTransient):
        pass

    assert type(decode_error(encode_error(Mine("later")))) is errors.BackendTransient


@pytest.mark.parametrize("found", [{}, {"code": "x"}, {"code": 99999, "message": "new"}, {"code": True, "data": [1]}])
def test_an_unknown_error_is_an_error_all_the_same(found: dict[str, object]) -> None:
    assert isinstance(decode_error(found), errors.MemorydError)
