"""Values compare, hash and print as attrs would have them, though the methods are written once."""

from __future__ import annotations

import pickle

import attrs
import pytest

from memoryd.core import Config, Forget, Scope, Stored, Value


@attrs.frozen(slots=True)
class Generated:
    name: str
    number: int = 0
    text: str = attrs.field(default="", repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Shared(Value):
    name: str
    number: int = 0
    text: str = attrs.field(default="", repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Other(Value):
    name: str
    number: int = 0
    text: str = ""


GIVEN = [("a", 0, ""), ("a", 1, ""), ("a", 0, "x"), ("b", 0, "")]


@pytest.mark.parametrize("one", GIVEN)
@pytest.mark.parametrize("two", GIVEN)
def test_two_are_equal_where_their_fields_are(one: tuple[str, int, str], two: tuple[str, int, str]) -> None:
    assert (Shared(*one) == Shared(*two)) is (Generated(*one) == Generated(*two))
    assert (Shared(*one) != Shared(*two)) is (Generated(*one) != Generated(*two))
    assert len({Shared(*one), Shared(*two)}) == len({Generated(*one), Generated(*two)})


def test_values_of_two_classes_differ() -> None:
    assert Shared("a") != Other("a")
    assert Shared("a") != ("a", 0, "")
    assert len({Shared("a"), Other("a")}) == 2


@pytest.mark.parametrize("given", GIVEN)
def test_the_text_is_the_one_of_attrs(given: tuple[str, int, str]) -> None:
    assert repr(Shared(*given)) == repr(Generated(*given)).replace("Generated", "Shared")


def test_the_fields_of_a_value_cannot_be_set_or_added() -> None:
    stored = Scope(user="ada")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        stored.user = "eve"  # type: ignore[misc]
    assert not hasattr(stored, "__dict__")


def test_values_copy_evolve_and_compare() -> None:
    scope = Scope(user="ada", session="s1")
    assert attrs.evolve(scope, session="s2") == Scope(user="ada", session="s2")
    assert pickle.loads(pickle.dumps(scope)) == scope
    assert Config() == Config() != Config(language="none")
    assert hash(Forget(b"0" * 16, scope, 1, (b"1" * 16,))) == hash(Forget(b"0" * 16, scope, 1, (b"1" * 16,)))
    assert Stored.__eq__ is Value.__eq__
