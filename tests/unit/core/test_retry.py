"""Retry decisions are pure: tables of input and answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import GiveUp, Restart, RetryPolicy, after_crash, backoff

POLICY = RetryPolicy(first=0.5, cap=60.0, server_cap=300.0)


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_backoff_grows_and_is_capped(attempt: int, jitter: float) -> None:
    delay = backoff(POLICY, attempt, jitter)
    assert 0.25 <= delay <= 60.0
    assert backoff(POLICY, attempt + 1, jitter) >= delay


@pytest.mark.parametrize(("asked", "least"), [(10.0, 10.0), (1e9, 300.0), (0.0, 0.25), (-5.0, 0.25)])
def test_a_servers_wish_is_honoured_and_capped(asked: float, least: float) -> None:
    assert backoff(POLICY, 1, 0.0, retry_after=asked) == least


def test_five_restarts_in_a_minute_then_give_up() -> None:
    crashes: tuple[float, ...] = ()
    for at in range(5):
        assert isinstance(after_crash(crashes, float(at)), Restart)
        crashes = (*crashes, float(at))
    assert after_crash(crashes, 5.0) == GiveUp()


def test_old_crashes_do_not_count() -> None:
    assert isinstance(after_crash((0.0, 1.0, 2.0, 3.0, 4.0), 64.5), Restart)
