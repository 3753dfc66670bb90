"""The command line.  One command a file, imported when it is called; exit codes in docs/reference/cli.md."""

from memoryd.cli._main import main as main
