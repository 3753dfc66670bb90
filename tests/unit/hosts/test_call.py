"""One run of a hook program: whose memory it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.hosts._call import understood
from memoryd.hosts._dialect import find_dialect
from memoryd.wire import HookCall


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"MEMORYD_HOME": "/srv/m", "HOME": "/h"}, "/srv/m"),
        ({"MEMORYD_HOME": "rel/m", "HOME": "/h"}, "/w/project/rel/m"),
        ({"MEMORYD_HOME": "../m", "HOME": "/h"}, "/w/m"),
        ({"MEMORYD_HOME": "~/m", "HOME": "/h"}, "/h/m"),
        ({"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/memoryd"),
        ({"HOME": "/h"}, "/h/.local/share/memoryd"),
    ],
)
def test_the_home_is_the_one_that_the_agent_names_wherever_the_daemon_runs(environment: dict[str, str], home: str) -> None:
    call = understood(HookCall("claude", "Stop", "/w/project", environment, b"{}"), find_dialect("claude"))
    assert call.home == Path(home)


def test_no_home_is_that_of_whoever_answers() -> None:
    assert understood(HookCall("claude", "Stop", "/w", {}, b"{}"), find_dialect("claude")).home is None
