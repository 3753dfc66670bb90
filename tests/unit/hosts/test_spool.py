"""What hooks spooled: every whole frame comes back, whatever is around it."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memoryd.hosts import has_spool
from memoryd.hosts._spool import append_spool, claim_spool, split_frames
from memoryd.wire import HookCall

CALL = HookCall("claude", "Stop", "/w", {"HOME": "/h"}, b'{"a": "\nH\x00\x00"}')


def stdins(calls: list[HookCall]) -> list[bytes]:
    return [call.stdin for call in calls]


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    assert not has_spool(tmp_path) and not has_spool(tmp_path / "missing")
    for number in range(3):
        append_spool(tmp_path, HookCall("claude", "Stop", stdin=b"%d" % number))
    assert has_spool(tmp_path)
    (file,) = claim_spool(tmp_path)
    append_spool(tmp_path, CALL)
    assert stdins(file.calls()) == [b"0", b"1", b"2"]
    (another,) = claim_spool(tmp_path)  # what came meanwhile is a file of its own
    assert stdins(another.calls()) == [CALL.stdin]
    assert file.finish() == []
    file.close()
    another.close()


def test_a_file_whose_taker_ended_is_taken_again(tmp_path: Path) -> None:
    append_spool(tmp_path, CALL)
    (file,) = claim_spool(tmp_path)
    assert list(claim_spool(tmp_path)) == [], "it is being taken in"
    file.close()
    assert has_spool(tmp_path)
    (again,) = claim_spool(tmp_path)
    assert stdins(again.calls()) == [CALL.stdin]
    again.finish()
    again.close()
    assert not has_spool(tmp_path)


def test_what_is_appended_at_the_last_moment_is_not_lost(tmp_path: Path) -> None:
    append_spool(tmp_path, CALL)
    writer = os.open(tmp_path / "hooks.spool", os.O_WRONLY | os.O_APPEND)
    (file,) = claim_spool(tmp_path)
    assert len(file.calls()) == 1
    os.write(writer, CALL.encode() + b"\n")
    assert stdins(file.finish()) == [CALL.stdin]
    assert os.fstat(writer).st_nlink == 0, "by this a hook program sees that it has to write again"
    file.close()
    os.close(writer)


def test_damage_is_put_aside_and_nothing_else_is_lost(tmp_path: Path) -> None:
    frame = CALL.encode() + b"\n"
    flipped = bytearray(frame)
    flipped[20] ^= 0xFF
    (tmp_path / "hooks.spool").write_bytes(frame + frame[:30] + frame + bytes(flipped) + b"\nnoise\n" + frame + frame[:-4])
    (file,) = claim_spool(tmp_path)
    calls = file.calls()
    assert len([call for call in calls if call == CALL]) >= 3
    (aside,) = (tmp_path / "hooks.quarantine").iterdir()
    assert b"noise" in aside.read_bytes()
    assert aside.stat().st_mode & 0o777 == 0o600
    file.close()


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(None)), max_size=8))
def test_any_damage_between_frames_leaves_them_whole(parts: list[bytes | None]) -> None:
    frame = CALL.encode() + b"\n"
    data = b"".join(frame if part is None else part.replace(b"H", b"h") + b"\n" for part in parts)
    calls, damaged = split_frames(data)
    assert calls == [CALL] * sum(part is None for part in parts)
    assert len(damaged) + len(calls) * len(frame) == len(data)
