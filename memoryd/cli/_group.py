"""The root command, its subcommands by name, and the options that every command takes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from memoryd import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["COMMANDS", "Options", "command", "pass_options", "root", "shared"]

# name -> (where it is, one line for the list of commands)
COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("_demo:demo", "Four steps on a real transcript: accepted, recalled, refused, restored."),
    "turn": ("_turn:turn", "Record turns: JSON or JSONL on stdin, one JSON line out for each."),
    "recall": ("_recall:recall", "Find turns and memories."),
    "store": ("_store:store", "Store a memory under a key."),
    "get": ("_get:get", "Print the memory of a key."),
    "list": ("_list:list_memories", "List the memories of the user, newest first."),
    "history": ("_history:history", "Every value that a key had."),
    "edit": ("_edit:edit", "Correct a turn or a memory."),
    "forget": ("_forget:forget", "Erase turns and memories from every file."),
    "checkpoint": ("_checkpoint:checkpoint", "Archive transcripts, and get them back."),
    "gate": ("_gate:gate", "The gate before a compaction: its state, and a way past it."),
    "serve": ("_serve:serve", "The daemon: serve every agent over a unix socket."),
    "status": ("_status:status", "What memoryd holds, and how it is."),
    "doctor": ("_doctor:doctor", "Look for what is wrong, and say what to do about it."),
    "logs": ("_logs:logs", "The records of memoryd itself."),
    "backends": ("_backends:backends", "Where memory can be kept: every backend, and which are used."),
    "replay": ("_replay:replay", "Send the whole log to a backend, from where it stopped before."),
    "export": ("_export:export", "Write turns and memories to a file, as JSON lines."),
    "import": ("_import:import_", "Take in what export wrote; what is there already is passed over."),
    "backup": ("_backup:backup", "Write the profile into a file, while it is in use."),
    "restore": ("_restore:restore", "Make a backup the profile that it is of, or another."),
    "repair": ("_repair:repair", "Find what is damaged in the files of the profile, and mend it."),
    "profiles": ("_profiles:profiles", "The profiles of the home: list, create, copy, rename, delete, rekey."),
    "evaluate": ("_evaluate:evaluate", "Measure the backends that could be used, and say which is best."),
    "tool": ("_tool:tool", "One call of the tool memory_backend, as a model makes it."),
    "dead": ("_dead:dead", "Events that a backend refused for good."),
    "install": ("_install:install", "Put memoryd into an agent program."),
    "uninstall": ("_install:uninstall", "Take memoryd out of an agent program."),
    "pause": ("_pause:pause", "Stop recording what agent programs tell."),
    "resume": ("_pause:resume", "Record again."),
    "config": ("_config:config", "The configuration: values, problems, files."),
    "version": ("_version:version", "Versions of memoryd and what it stands on."),
    "completion": ("_completion:completion", "The completion script for a shell."),
}


@attrs.define(slots=True)
class Options:
    """What the common options say; the one nearest to the command's end wins."""

    home: str | None = None
    profile: str | None = None
    user: str | None = None
    session: str | None = None
    json: bool = False
    require_daemon: bool = False

    @property
    def profile_name(self) -> str:
        return _first(self.profile, "MEMORYD_PROFILE", "default")

    @property
    def user_name(self) -> str:
        return _first(self.user, "MEMORYD_USER", "default")


def _first(given: str | None, variable: str, default: str) -> str:
    return given if given is not None else os.environ.get(variable) or default


pass_options = click.make_pass_decorator(Options, ensure=True)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    options = context.ensure_object(Options)
    if value is not None and value is not False and parameter.name:
        setattr(options, parameter.name, value)


Function = TypeVar("Function", bound=Callable[..., Any])


def shared(function: Function) -> Function:
    """Adds the common options; they may stand before or after the name of a command."""
    for add in (
        click.option("--json", is_flag=True, expose_value=False, callback=_keep, help="JSON on stdout, for programs."),
        click.option("--require-daemon", is_flag=True, expose_value=False, callback=_keep, help="Fail where no daemon answers."),
        click.option("--session", metavar="NAME", expose_value=False, callback=_keep, help="The thread of a conversation."),
        click.option("--user", metavar="NAME", expose_value=False, callback=_keep, help="Whose memory [$MEMORYD_USER, default]."),
        click.option("--profile", metavar="NAME", expose_value=False, callback=_keep, help="Which profile [$MEMORYD_PROFILE, default]."),
        click.option("--home", metavar="DIR", expose_value=False, callback=_keep, help="Where memoryd keeps its files [$MEMORYD_HOME]."),
    ):
        function = add(function)
    return function


def command(**attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A click command with the common options.  Its function's docstring is the help text; its result an exit code or None."""
    return lambda function: click.command(**attributes)(shared(function))


class Root(click.Group):
    """Imports a command's module when it is called or asked for its own help, not before.

    Adapters give commands by entry points in the group ``memoryd.commands``; memoryd's own come first.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(_points().keys() - COMMANDS.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            found: click.Command = getattr(importlib.import_module("memoryd.cli." + module), name)
            return found
        return _adapters(cmd_name) if cmd_name in _points() else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, line) for name, (_, line) in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *((name, _about(name)) for name in self.list_commands(ctx)[len(own) :])])


def _points() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, which memoryd's own commands do not pay

    return {point.name: point for point in entry_points(group="memoryd.commands")}


@cache
def _adapters(name: str) -> click.Command:
    """The command of an adapter, with the common options; it gets them by ``click.pass_obj``."""
    found: click.Command = shared(_points()[name].load())
    return found


def _about(name: str) -> str:
    """The first line of the docstring of the package that a command is in; the package is read, not imported."""
    import ast  # only where commands are listed
    from importlib.util import find_spec

    spec = find_spec(_points()[name].module.partition(".")[0])
    read = getattr(spec.loader, "get_source", None) if spec is not None else None
    source = read(spec.name) if spec is not None and read is not None else None
    return (ast.get_docstring(ast.parse(source or "")) or "").partition("\n")[0]


_EPILOG = "'memoryd COMMAND --help' says more about each; 'memoryd doctor' looks for what is wrong and says what to do."


@click.command(cls=Root, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, message="memoryd %(version)s")
@shared
def root() -> None:
    """The durable memory runtime between an agent and any memory backend.

    \b
    Examples:
      echo '{"user": "I live in Oslo", "assistant": "Noted."}' | memoryd turn
      memoryd recall "where do I live"
      memoryd store city Oslo
    """
