"""What is remembered of a session: a saving, never a truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.errors import StoreLocked
from memoryd.hosts._state import Known, Place, Saved, States
from memoryd.store import open_profile


def states(home: Path, host: str = "claude") -> States:
    return States(open_profile(home, "default"), host)


def test_what_is_put_comes_back_for_its_host_and_session_only(tmp_path: Path) -> None:
    place, saved = Place(path="/x", inode=1, offset=2, id="u", taken=3, late="d"), Saved(path="/x", inode=1, size=2, changed=3, checkpoint="c")
    states(tmp_path).put("s-1", place)
    states(tmp_path).put("s-1", saved)
    assert (states(tmp_path).place("s-1"), states(tmp_path).saved("s-1")) == (place, saved)
    assert (states(tmp_path).place("s-2"), states(tmp_path, "codex").place("s-1")) == (Place(), Place())
    states(tmp_path).put("s-1", Known(session="s-1", transcript="/x"))
    assert [known.session for known in states(tmp_path).sessions()] == ["s-1"]
    assert states(tmp_path, "codex").sessions() == []
    for path in tmp_path.rglob("hosts/*"):
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{", '{"path": 1}', '{"offset": "2"}', '{"unheard": 1}', '{"size": [1]}', "null", "\xff"])
def test_a_file_that_is_not_as_it_was_written_counts_as_none(tmp_path: Path, text: str) -> None:
    for value in (Place(path="/x"), Saved(path="/x"), Known(session="s")):
        states(tmp_path).put("s", value)
    for path in tmp_path.rglob("hosts/*"):
        path.write_text(text)
    assert (states(tmp_path).place("s"), states(tmp_path).saved("s"), states(tmp_path).known("s")) == (Place(), Saved(), Known())
    assert states(tmp_path).sessions() == []


def test_one_at_a_time_takes_from_a_session(tmp_path: Path) -> None:
    one, other, again = (states(tmp_path).taking(name, 0.02) for name in ("s-1", "s-2", "s-1"))
    with one, other, pytest.raises(StoreLocked), again:
        pass
    with states(tmp_path).taking("s-1", 1):
        pass


def test_a_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    (open_profile(tmp_path, "default").directory / "hosts").write_text("in the way")
    states(tmp_path).put("s", Place(path="/x"))
    assert states(tmp_path).place("s") == Place()
