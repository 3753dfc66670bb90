"""Measuring real backends: what is asked, what becomes a note, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from memoryd.core import Config
from memoryd.errors import BackendNotFound, ConfigError
from memoryd.evaluate import evaluate, load_dataset, read_dataset
from memoryd.testing import FakeRemote, RemoteFault, registered

DATA = Path(__file__).parents[2] / "benchmarks/data/conversations.json"


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def named(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (one for one in report["evaluations"] if one["name"] == name)
    return dict(found)


def test_local_works_and_null_keeps_nothing(tmp_path: Path) -> None:
    report = evaluate(["local", "null"], home=tmp_path / "home")
    local, null = named(report, "local"), named(report, "null")
    assert (local["store_success"], local["retrieve_success"], local["query_result_count"]) == (True, True, 5)
    assert local["data_location"].startswith(str(tmp_path / "home/profiles"))
    assert (local["backend_name"], local["requires_api_key"], local["notes"]) == ("local (SQLite)", False, [])
    assert min(local[f"{step}_latency_ms"] for step in ("store", "retrieve", "query")) > 0
    assert (null["store_success"], null["retrieve_success"], null["query_returns_results"]) == (False, False, False)
    assert null["recommendation"] == "NOT RECOMMENDED"
    assert report["recommendation"].startswith("best backend: local (SQLite)")


def test_nothing_is_left_and_the_home_is_not_touched(tmp_path: Path, scratch: Path, private_home: Path) -> None:
    evaluate(["local"], faults=True)
    assert list(scratch.iterdir()) == []
    assert not private_home.exists()


def test_a_name_that_there_is_not_is_refused(scratch: Path) -> None:
    with pytest.raises(BackendNotFound):
        evaluate(["local", "nope"])
    assert list(scratch.iterdir()) == []


# -- clouds ------------------------------------------------------------------------------------------------------------------------


def test_a_cloud_is_asked_only_where_it_is_named() -> None:
    remote = FakeRemote("fake")
    with registered("fake", lambda context: remote):
        assert {one["name"] for one in evaluate()["evaluations"]} == {"local", "null"}
        assert remote.calls == 0
        for config in (Config(backend="fake"), Config(mirrors=("fake",))):
            assert "fake" in {one["name"] for one in evaluate(config=config)["evaluations"]}
        assert [one["name"] for one in evaluate(["fake"])["evaluations"]] == ["fake"]


def test_a_cloud_loses_privacy_and_its_scope_is_erased() -> None:
    remote = FakeRemote("fake")
    with registered("fake", lambda context: remote):
        report = evaluate(["fake", "local"], conversations=read_dataset(DATA)[:1])
    assert remote.received
    assert remote.entries == []
    fake = named(report, "fake")
    assert (fake["store_success"], fake["retrieve_success"], fake["query_result_count"]) == (True, True, 5)
    assert fake["is_cloud"]
    assert "stay local for sovereignty" in report["recommendation"]


# -- what goes wrong ---------------------------------------------------------------------------------------------------------------


def test_a_backend_that_is_not_available(tmp_path: Path) -> None:
    report = evaluate(["honcho", "local"])
    honcho = named(report, "honcho")
    assert (honcho["available"], honcho["score"], honcho["grade"], honcho["recommendation"]) == (False, 0, "F", "NOT AVAILABLE")
    assert honcho["notes"][0] == "Backend not available"
    assert "HONCHO_URL" in honcho["notes"][1]
    assert honcho["is_cloud"]
    assert report["recommendation"].startswith("best backend: local (SQLite), score ")


@pytest.mark.parametrize("fault", ["transient", "permanent", "applied", "bug"])
def test_an_exception_becomes_a_note_and_does_not_end_the_run(fault: Any) -> None:
    remote = FakeRemote("fake", plan=[RemoteFault(fault)])
    with registered("fake", lambda context: remote):
        report = evaluate(["fake", "local"])
    fake = named(report, "fake")
    assert any(note.startswith("store: ") for note in fake["notes"])
    assert (fake["available"], fake["store_success"]) == (True, False)
    assert named(report, "local")["store_success"]


def test_a_backend_that_cannot_be_built_or_opened() -> None:
    def fails(context: Any) -> Any:
        raise ZeroDivisionError("a secret")

    down = FakeRemote("down", outage=RemoteFault("transient"))
    with registered("fails", fails), registered("down", lambda context: down):
        report = evaluate(["fails", "down"])
    assert named(report, "fails")["notes"][0] == "Backend not available"
    assert named(report, "down")["available"]
    assert "open" in named(report, "down")["notes"][0]
    assert report["backends_evaluated"] == 2


# -- beside the points -------------------------------------------------------------------------------------------------------------


def test_relevance_reliability_and_cost_stand_beside() -> None:
    report = evaluate(["local", "null"], conversations=read_dataset(DATA), faults=True)
    beside = report["beside"]["local"]
    assert 0.5 < beside["relevance"]["recall@5"] <= beside["relevance"]["recall@10"] <= beside["relevance"]["recall@20"] <= 1
    assert beside["relevance"]["questions"] > 20
    assert (beside["reliability"]["passed"], beside["reliability"]["failed"]) == (7, 0)
    assert beside["reliability"]["faults"]["disk full while writing"] == "passed"
    assert beside["cost"]["calls"] == 15
    assert beside["cost"]["bytes_given"] > 100
    assert beside["cost"]["bytes_kept_here"] > 0
    assert set(report["beside"]["null"]) == {"cost"}


def test_a_remote_one_has_no_disk_here() -> None:
    remote = FakeRemote("fake")
    with registered("fake", lambda context: remote):
        found = evaluate(["fake"], faults=True)["beside"]["fake"]["reliability"]
    assert found["failed"] == 0
    assert found["faults"]["delivered twice"] == "passed"
    assert found["faults"]["read error"] == "does not apply"


def test_a_backend_that_forgets_is_caught() -> None:
    with registered("fake", lambda context: FakeRemote("fake")):  # a new one each time: nothing survives a restart
        faults = evaluate(["fake"], faults=True)["beside"]["fake"]["reliability"]["faults"]
    assert faults["kept over a restart"].startswith("failed: expected 1 memories")


@pytest.mark.parametrize("rows", [None, [], {}, [1], [{}], [{"conversation": {"speaker_a": "a", "speaker_b": "b"}, "qa": 1}]])
def test_a_data_set_that_is_none(rows: Any) -> None:
    with pytest.raises(ConfigError):
        load_dataset(rows)


def test_a_data_set_that_is_not_json_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("{")
    with pytest.raises(ConfigError, match="data.json: is not JSON"):
        read_dataset(tmp_path / "data.json")


# -- killed half-way ---------------------------------------------------------------------------------------------------------------

CLOUD = """
import json, pathlib, trio
from memoryd.core import Availability, BackendInfo, Outcome

PLACE = pathlib.Path({place!r})

class Cloud:
    info = BackendInfo("cloud", "cloud", True, "elsewhere", False, frozenset({{"memories", "query"}}))
    def __init__(self, context): pass
    def is_available(self): return Availability(True)
    async def open(self): pass
    async def aclose(self): pass
    async def position(self): return None
    async def query(self, user_id, text, limit=10): raise LookupError
    async def retrieve(self, user_id, key):
        print("half-way", flush=True)
        {retrieve}
    async def apply(self, entries):
        with PLACE.open("a") as file:
            for event in [entry.event for entry in entries]:
                words = [type(event).__name__, getattr(event, "key", None), list(getattr(event, "targets", ()))]
                file.write(json.dumps(words) + "\\n")
        erasing = PLACE.read_text().count("Forget")
        return [Outcome("transient" if erasing == {refused} else "ok") for _ in entries]

create = Cloud
"""
ERASED = ['["Deletion", "evaluation-0", []]', '["Forget", null, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]']


def plugged(home: Path, place: Path, **filled: object) -> None:
    """The backend ``cloud`` in the folder of plug-ins; it writes what it is told to ``place``."""
    (home / "plugins").mkdir(parents=True)
    (home / "plugins/cloud.py").write_text(CLOUD.format(place=str(place), **filled))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_killed_half_way_it_leaves_nothing(tmp_path: Path, scratch: Path, private_home: Path, end: signal.Signals) -> None:
    place = tmp_path / "elsewhere.jsonl"
    plugged(private_home, place, retrieve="await trio.sleep_forever()", refused=-1)
    program = [sys.executable, "-c", "from memoryd.evaluate import evaluate; evaluate(['cloud'])"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"half-way\n"
        assert len(list(scratch.iterdir())) == 1
        os.killpg(child.pid, end)
    until = time.monotonic() + 60
    while list(scratch.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert list(scratch.iterdir()) == []
    written = place.read_text().splitlines()
    assert [written[5], written[-1]] == ERASED


def test_what_could_not_be_erased_is_said_and_tried_again(tmp_path: Path, scratch: Path, private_home: Path) -> None:
    place = tmp_path / "elsewhere.jsonl"
    plugged(private_home, place, retrieve="raise LookupError", refused=1)
    report = evaluate(["cloud"])
    assert "open or erase: Unapplied: transient" in named(report, "cloud")["notes"]
    written = place.read_text().splitlines()
    assert written[10:11] + written[11:12] == [ERASED[1], ERASED[0]], "the second time begins anew"
    assert written[-1] == ERASED[1]
    assert list(scratch.iterdir()) == []
