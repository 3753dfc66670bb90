"""``get_memory_backend``: one object for a home and a profile, any user, any thread, and a forked child has its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.blocking import Memory, MemoryBackend, get_memory_backend, reset_backend
from memoryd.errors import BackendNotFound, ClosedError, InvalidInput


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    reset_backend()


def test_it_keeps_memories_of_any_user(tmp_path: Path) -> None:
    backend = get_memory_backend(tmp_path)
    assert backend.store("ada", "city", "Oslo", {"type": "fact"}) is True
    assert backend.store("bob", "city", "Bergen") is True
    found = backend.retrieve("ada", "city")
    assert found is not None and (found.value, found.type, found.user_id) == ("Oslo", "fact", "ada")
    assert [memory.value for memory in backend.query("bob", "BERG")] == ["Bergen"]
    assert backend.query("bob", "oslo") == []
    assert backend.list_keys("ada") == ["city"]
    assert backend.delete("ada", "city") is True
    assert backend.retrieve("ada", "city") is None
    assert backend.delete("ada", "city") is True, "a missing key is gone already"
    assert [memory.value for memory in backend.list_memories("bob")] == ["Bergen"]


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    backend = get_memory_backend(tmp_path)
    assert (backend.backend_name, backend.is_cloud, backend.is_available()) == ("local (SQLite)", False, True)


def test_one_for_each_home_and_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = get_memory_backend(tmp_path / "a")
    assert get_memory_backend(str(tmp_path / "a"), "default") is first
    assert get_memory_backend(tmp_path / "b" / ".." / "a") is first
    work = get_memory_backend(tmp_path / "a", "work")
    assert len({first, work, get_memory_backend(tmp_path / "b")}) == 3
    first.store("ada", "city", "Oslo")
    assert work.retrieve("ada", "city") is None
    monkeypatch.setenv("MEMORYD_HOME", str(tmp_path / "a"))
    assert get_memory_backend() is first
    monkeypatch.setenv("MEMORYD_PROFILE", "work")
    assert get_memory_backend() is work


def test_reset_closes_it_and_configuration_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = get_memory_backend(tmp_path)
    monkeypatch.setenv("MEMORYD_BACKEND", "null")
    assert get_memory_backend(tmp_path).backend_name == "local (SQLite)"
    reset_backend()
    assert not first.is_available()
    with pytest.raises(ClosedError):
        first.list_keys("ada")
    second = get_memory_backend(tmp_path)
    assert (second.backend_name, second.store("ada", "city", "Oslo"), second.list_keys("ada")) == ("null (disabled)", False, [])
    reset_backend()
    reset_backend()


def test_one_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    get_memory_backend(tmp_path).close()
    assert get_memory_backend(tmp_path).is_available()


def test_one_that_cannot_be_opened_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_BACKEND", "nope")
    with pytest.raises(BackendNotFound):
        get_memory_backend(tmp_path)
    monkeypatch.delenv("MEMORYD_BACKEND")
    assert get_memory_backend(tmp_path).is_available()


def test_threads_at_once_get_the_same(tmp_path: Path) -> None:
    start = threading.Barrier(16)

    def work(number: int) -> MemoryBackend:
        start.wait()
        backend = get_memory_backend(tmp_path)
        backend.store(f"user {number}", "number", str(number))
        found = backend.retrieve(f"user {number}", "number")
        assert found is not None and found.value == str(number)
        return backend

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(work, range(16)))) == 1


@pytest.mark.parametrize("user", [None, "", 7, "x" * 501])
def test_a_user_is_never_guessed(tmp_path: Path, user: Any) -> None:
    backend = get_memory_backend(tmp_path)
    with memoryd.scope(user="ada", session="s1"):
        for call in (backend.list_keys, lambda who: backend.store(who, "k", "v"), lambda who: backend.delete(who, "k")):
            with pytest.raises(InvalidInput):
                call(user)


def test_private_stays_private(tmp_path: Path) -> None:
    backend = get_memory_backend(tmp_path)
    with memoryd.scope(user="ada", session="s1", private=True):
        assert backend.store("ada", "city", "Oslo") is False
    assert backend.list_keys("ada") == []


def test_it_sees_what_another_runtime_stored(tmp_path: Path) -> None:
    backend = get_memory_backend(tmp_path)
    with Memory(tmp_path) as other, memoryd.scope(user="ada"):
        for number in range(20):
            other.store("number", str(number))
            found = backend.retrieve("ada", "number")
            assert found is not None and found.value == str(number)


FORK = """
import os, sys, warnings
from memoryd.blocking import get_memory_backend, reset_backend
if sys.version_info >= (3, 12):
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
backend = get_memory_backend(sys.argv[1])
backend.store("ada", "parent", "1")
if (pid := os.fork()) == 0:
    own = get_memory_backend(sys.argv[1])
    assert own is not backend
    assert own.list_keys("ada") == ["parent"]
    own.store("ada", "child", "2")
    backend.store("ada", "inherited", "3")
    reset_backend()
    sys.exit()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert get_memory_backend(sys.argv[1]) is backend
print(backend.list_keys("ada"))
reset_backend()
"""


def test_a_forked_child_gets_its_own(tmp_path: Path, run_script: Any) -> None:
    done = run_script(FORK, tmp_path)
    assert (done.stdout, done.stderr) == ("['inherited', 'child', 'parent']\n", "")
