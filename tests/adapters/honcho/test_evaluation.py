"""``memoryd.evaluate`` on a real Honcho client and the stand-in."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from memoryd.core import Config
from memoryd.evaluate import evaluate, read_dataset
from memoryd.testing.honcho import HonchoServer
from tests.adapters.honcho.conftest import SPEED

DATA = Path(__file__).parents[2] / "benchmarks/data/conversations.json"


def test_local_is_worth_more_and_nothing_is_left_at_honcho(honcho: HonchoServer) -> None:
    config = Config(backends={"honcho": {"url": honcho.url, **SPEED}})
    whole = read_dataset(DATA)[0]
    short = attrs.evolve(whole, questions=whole.questions[:3])
    report = evaluate(["local", "honcho"], config=config, conversations=[short])
    local, cloud = report["results"]
    assert (local["grade"], cloud["is_cloud"], cloud["requires_api_key"]) == ("A", True, True)
    assert (cloud["store_success"], cloud["retrieve_success"], cloud["query_result_count"]) == (True, True, 5)
    assert local["score"] >= 85 >= cloud["score"], "whatever the latencies: privacy is 20 here and 5 there"
    assert "stay local for sovereignty" in report["recommendation"]
    assert report["beside"]["honcho"]["relevance"]["questions"] == 3
    assert (honcho.messages(), honcho.space.conclusions) == ([], {})
    assert "evaluated value" not in repr(honcho.space.sessions)


def test_a_key_alone_sends_nothing(honcho: HonchoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HONCHO_URL", honcho.url)
    monkeypatch.setenv("HONCHO_API_KEY", "key")
    assert {one["name"] for one in evaluate()["results"]} == {"local", "null"}
    assert honcho.received == []
