"""What Prometheus is told: every metric of the table, as its own parser reads it, and no text of a user."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import memoryd
from memoryd.daemon._metrics import METRICS, renderer
from memoryd.errors import ConfigError, JournalUnavailable


class Open:
    """The open profiles of a daemon."""

    def __init__(self, *runtimes: memoryd.Runtime) -> None:
        self._runtimes = list(runtimes)

    def runtimes(self) -> list[memoryd.Runtime]:
        return self._runtimes


async def test_every_metric_of_the_table_is_told_with_its_labels(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, "work", {"log": {"max_bytes": 1 << 20}}) as rt:
        with memoryd.scope(user="ada", session="heliotrope"):
            rt.sync_turn("heliotrope", "heliotrope")
            with pytest.raises(JournalUnavailable):
                rt.sync_turn("x" * (2 << 20), "too long for this log")
            await rt.checkpoint([{"role": "user", "content": "heliotrope"}])
            await rt.drain()
            await rt.flush()
        text = await renderer(Open(rt))()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert "heliotrope" not in text
    assert "ada" not in text
    for metric in METRICS:
        family = families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert family.samples
        assert {frozenset(sample.labels) for sample in family.samples} == {frozenset({"profile", *metric.labels})}
        assert {sample.labels["profile"] for sample in family.samples} == {"work"}
    values = {(sample.name, *sample.labels.values()): sample.value for family in families.values() for sample in family.samples}
    assert values["memoryd_refused_events_total", "work"] == 1
    assert values["memoryd_stage_calls_total", "work", "append"] == 2
    assert values["memoryd_state", "work", "degraded"] == 1


async def test_of_two_homes_with_one_name_one_is_told_and_a_closed_one_is_none(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path / "a") as one, memoryd.open_runtime(tmp_path / "b") as two:
        text = await renderer(Open(one, two))()
        assert text.count('memoryd_log_events{profile="default"}') == 1
    assert 'memoryd_log_events{profile="default"}' not in await renderer(Open(one))()


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'memoryd\[metrics\]'"):
        renderer(Open())
