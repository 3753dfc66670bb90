"""Runs a command and turns whatever ends it into an exit code and one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from memoryd.cli._group import root
from memoryd.cli._output import error_object, one_line, write_json
from memoryd.cli._session import innermost
from memoryd.errors import CheckpointBlocked, ConfigError, MemorydError

__all__ = ["run"]

EXIT_ERROR = 1
EXIT_REFUSED = 2
EXIT_USAGE = 64
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: ``sys.argv``) and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if os.name == "nt":
        return _fail(given, EXIT_ERROR, "memoryd: memoryd runs on Linux and macOS; on Windows use it inside WSL")
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _invoke(given)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quiet_pipe()
    except Exception as error:  # noqa: BLE001 - the outermost edge: a bug ends in one line, not in a wall of text
        code = _bug(given, innermost(error))
    return code


def _open_streams() -> None:
    """Where a standard stream was closed (``>&-``), the null device: else the next file that is opened would stand there."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def _invoke(given: list[str]) -> int:
    try:
        if instruction := os.environ.get("_MEMORYD_COMPLETE"):
            return shell_complete(root, {}, "memoryd", "_MEMORYD_COMPLETE", instruction)
        # not root.main(): it prints at an interruption, and ends the process at a broken pipe
        with root.make_context("memoryd", list(given)) as context:
            result = root.invoke(context)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return EXIT_USAGE
    except click.ClickException as error:
        place = error.ctx if isinstance(error, click.UsageError) else None
        where = f" (see '{place.command_path} --help')" if place is not None else ""
        return _fail(given, EXIT_USAGE, f"memoryd: {error.format_message()}{where}", error)
    except (KeyboardInterrupt, BaseExceptionGroup, OSError, MemorydError) as error:
        return _report(given, innermost(error))


def _report(given: list[str], error: BaseException) -> int:
    match error:
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case BrokenPipeError():
            raise error
        case CheckpointBlocked():
            return _fail(given, EXIT_REFUSED, str(error), error)
        case ConfigError():
            return _fail(given, EXIT_USAGE, f"memoryd: {error}", error)
        case MemorydError():
            return _fail(given, EXIT_ERROR, f"memoryd: {error}", error)
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return _fail(given, EXIT_ERROR, f"memoryd: {place}{error.strerror or error}", error)
        case _:
            raise error


def _fail(given: list[str], code: int, line: str, error: BaseException | None = None) -> int:
    # the line is for people and for hosts that read stderr; the object is for programs that read stdout
    print(one_line(line), file=sys.stderr)
    if "--json" in given and error is not None:
        write_json(error_object(error))
    return code


def _bug(given: list[str], error: BaseException) -> int:
    """An error that no class of ours stands for.  Its message may hold a user's text, so only its class is printed."""
    if os.environ.get("MEMORYD_TRACEBACK"):
        traceback.print_exception(error)
    nameless = RuntimeError(f"internal error: {type(error).__name__}")
    return _fail(given, EXIT_BUG, f"memoryd: {nameless}; MEMORYD_TRACEBACK=1 shows where", nameless)


def _quiet_pipe() -> int:
    """The reader went away: say nothing, and keep the interpreter from saying something when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_PIPE
