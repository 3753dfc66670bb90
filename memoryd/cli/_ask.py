"""The question before something is gone for good."""

from __future__ import annotations

import sys

import click

__all__ = ["ask"]


def ask(question: str, *, yes: bool) -> None:
    """Go on only where the user says so: a program has to say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody is there to be asked; say --yes.")
    click.confirm(question, abort=True, err=True)  # stdout may be JSON for a program
