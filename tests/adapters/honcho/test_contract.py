"""Honcho runs all of the contract, on the stand-in."""

from __future__ import annotations

from memoryd.testing.contract import checks, run_contract, subject


async def test_it_passes_all_of_it() -> None:
    with subject("honcho") as honcho:
        assert set(honcho.faults) == {"transient", "permanent", "ambiguous"}
        report = await run_contract(honcho)
    assert not report.failed
    assert len(report.passed) == len(checks())
