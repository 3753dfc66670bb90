"""Records go where standard error is, whatever a host has put there."""

from __future__ import annotations

import io
import sys

import pytest

from memoryd.log import Log


class Guarded:
    """A stream as hosts wrap one: no attributes of its own, no weak references."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> int:
        self.lines.append(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def test_a_wrapped_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, log = Guarded(), Log()
    monkeypatch.setattr(sys, "stderr", stream)
    log.warning("gate refused", cause="full")
    log.warning("gate refused", cause="full")
    assert "".join(stream.lines).count('"event": "gate refused"') == 2


def test_a_stream_that_was_put_in_its_place_later(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(format="json")
    log.warning("first")
    stream = Guarded()
    monkeypatch.setattr(sys, "stderr", stream)
    log.warning("second")
    assert ("first" in capsys.readouterr().err, "second" in "".join(stream.lines)) == (True, True)


def test_no_stream_and_a_closed_one(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        Log(format="json").warning("nobody reads this")
    blocked = tmp_path_factory.mktemp("log") / "file"
    blocked.mkdir()
    Log(path=blocked).warning("nor this")
