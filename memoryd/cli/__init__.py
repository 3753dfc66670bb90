"""The command line.  One command a file, imported when it is called; exit codes in docs/reference/cli.md."""

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: ``sys.argv``) and return its exit code.  Never prints a traceback."""
    try:
        from memoryd.cli._main import run

        return run(arguments)
    except KeyboardInterrupt:  # also while the program still loads
        return 130
