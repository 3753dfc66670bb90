"""The bundled backends run all of the contract, and the contract notices a backend that breaks it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest
import trio

from memoryd.core import BackendContext, Entry, Outcome
from memoryd.testing import FakeRemote
from memoryd.testing.contract import Subject, checks, installed_subject, run_contract


@pytest.mark.parametrize("name", ["null", "local"])
async def test_the_bundled_backends_pass_all_of_it(name: str) -> None:
    report = await run_contract(installed_subject(name))
    assert not report.failed
    assert len(report.passed) == len(checks())


def test_the_report_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memoryd.testing", "null", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["backends"]["null"]
    assert (report["passed"], report["failed"], report["skipped"]) == (len(checks()), 0, 0)


def test_an_unknown_backend_is_named() -> None:
    done = subprocess.run([sys.executable, "-m", "memoryd.testing", "nope"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert "nope" in done.stderr
    assert "local" in done.stderr


class Doubling(FakeRemote):
    """Keeps a repeated event twice."""

    def _apply(self, entry: Entry) -> Outcome:
        self._kept[entry.event.event_id + bytes([len(self._kept) % 256])] = entry
        return Outcome("ok")


class Mixing(FakeRemote):
    """Takes every user for one."""

    async def list_keys(self, user_id: str) -> list[str]:
        return [key for user in ("ada", "bob") for key in await super().list_keys(user)]


class Dropping(FakeRemote):
    """Answers for less than it was given."""

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        return (await super().apply(entries))[:1]


BROKEN = {Doubling: "applying_again_changes_nothing", Mixing: "users_have_memories_of_their_own", Dropping: "there_is_one_outcome_an_event"}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
async def test_a_backend_that_breaks_the_contract_is_noticed(broken: type[FakeRemote], monkeypatch: pytest.MonkeyPatch) -> None:
    from memoryd.testing.contract import _bench

    monkeypatch.setattr(_bench, "PATIENCE", 0.1)
    kept: dict[str, FakeRemote] = {}

    def create(context: BackendContext) -> FakeRemote:
        return kept.setdefault(context.instance, broken("fake"))

    with trio.fail_after(120):
        report = await run_contract(Subject("fake", create))
    assert BROKEN[broken] in dict(report.failed)
