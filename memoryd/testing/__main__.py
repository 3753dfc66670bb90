"""``python -m memoryd.testing [NAME ...] [--json]``: put installed backends through the contract.

Exit code 0 where every check passed, 1 where one failed, 64 for a name that is not installed or cannot be imported.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack

import trio

from memoryd.errors import BackendNotFound, BackendPermanent
from memoryd.testing.contract import ContractReport, Subject, run_contract, subject

BUNDLED = ("null", "local", "honcho")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m memoryd.testing", description="Put backends through the contract.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"installed backends [{' '.join(BUNDLED)}]")
    parser.add_argument("--json", action="store_true", help="a report as JSON on stdout")
    options = parser.parse_args(arguments)
    with ExitStack() as servers:
        try:
            subjects = [servers.enter_context(subject(name)) for name in options.names or BUNDLED]
        except (BackendNotFound, BackendPermanent) as error:
            print(f"memoryd.testing: {error}", file=sys.stderr)
            return 64
        reports = [_run(one, quiet=options.json) for one in subjects]
    if options.json:
        print(json.dumps({"backends": {report.backend: report.as_json() for report in reports}}, indent=2))
    return 0 if all(report.ok for report in reports) else 1


def _run(one: Subject, *, quiet: bool) -> ContractReport:
    def told(name: str, passed: bool) -> None:
        if not quiet:
            print(f"{one.name:<8} {'passed' if passed else 'FAILED'}  {name.replace('_', ' ')}", flush=True)

    report = trio.run(lambda: run_contract(one, on_check=told))
    if not quiet:
        for name, reason in report.failed:
            print(f"{one.name}: {name}: {reason}", file=sys.stderr)
        print(f"{one.name}: {len(report.passed)} passed, {len(report.failed)} failed, 0 skipped")
    return report


if __name__ == "__main__":
    sys.exit(main())
