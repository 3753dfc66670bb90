"""What an installed hook is: the hook program in memoryd's home, and the command that starts it, guarded.

The command is one string for ``sh``: it must do no harm where the hook program, its Python or memoryd itself is gone.  CPython exits
with 2 where its script is missing, and hosts read a 2 as a refusal, so every command looks first.  Not the form with a list of
arguments: a host too old for it would start a bare Python, which runs what it reads on its standard input.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import attrs

from memoryd.core import Value
from memoryd.errors import ConfigError
from memoryd.hosts import Change, Place, Plan

__all__ = [
    "DROP_WHY", "HOOK_FILE", "PUT_WHY", "Hook", "after_uninstall", "gate_command", "hook_change", "hook_command", "hook_path",
    "hook_program", "is_ours", "launcher_change", "launcher_drop", "lenient_command", "lost_gate", "lost_gate_json", "named_in",
    "notes_of", "program", "scope_of", "wants_gate",
]

HOOK_FILE = "memoryd_hook.py"  # in every command: by it an entry is known as ours
PUT_WHY = "hooks that record what is said and archive before a compaction"
DROP_WHY = "without the hooks of memoryd"
_LAUNCHER = "memoryd-hook"


@attrs.frozen(slots=True, eq=False, repr=False)
class Hook(Value):
    """An event that a host is asked to tell, and the seconds it waits for the hook.  A ``gate`` may refuse what the event announces."""

    event: str
    timeout: int
    gate: bool = False


def is_ours(command: object) -> bool:
    """Whether a command of a host's configuration starts memoryd's hook program."""
    return isinstance(command, str) and HOOK_FILE in command


def hook_path(place: Place) -> Path:
    return place.memoryd_home / "bin" / HOOK_FILE


def hook_program() -> bytes:
    """The hook program of this memoryd."""
    return files("memoryd").joinpath("hook.py").read_bytes()


def hook_change(place: Place) -> tuple[Change, ...]:
    """The hook program as this memoryd has it; no change where it is in its place already."""
    path, content = hook_path(place), hook_program()
    if path.is_file() and path.read_bytes() == content:
        return ()
    return (Change(path, content, "the hook program: standard library only"),)


# -- commands ----------------------------------------------------------------------------------------------------------------


def hook_command(place: Place, host: str, event: str) -> str:
    """For an event that must never get in the way: whatever is gone, it ends well and says nothing."""
    return f'{_start(place)} && exec {_call(host, event)}; exit 0'


def gate_command(place: Place, host: str, event: str, veto: str, passes: Sequence[int]) -> str:
    """For the event before a compaction: where the hook program gives no answer, ``veto``, in the shell's words, refuses.

    ``passes`` are the exit codes that are an answer.  The hook program is no ``exec``, so that its death is seen.
    """
    answers = "|".join(map(str, passes))
    return (
        f'{_start(place)} && {_call(host, event)}; c=$?; case $c in {answers}) exit $c;; esac; '
        f'case "$MEMORYD_GATE" in off|warn) exit 0;; esac; {veto}'
    )


def lenient_command(place: Place, host: str, event: str) -> str:
    """The gate without a veto: a checkpoint that fails is said, and the compaction goes on."""
    return f'export MEMORYD_GATE="${{MEMORYD_GATE:-warn}}"; {hook_command(place, host, event)}'


def _start(place: Place) -> str:
    home, python = shlex.quote(str(place.memoryd_home)), shlex.quote(place.python)
    return f'export MEMORYD_HOME={home}; P={python} H="$MEMORYD_HOME/bin/{HOOK_FILE}"; [ -x "$P" ] && [ -r "$H" ]'


def named_in(command: str) -> tuple[str, ...]:
    """The Python and the hook program that a command of ours starts; empty where it was rewritten."""
    lexer = shlex.shlex(command.partition("[")[0], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        values = dict(word.split("=", 1) for word in lexer if "=" in word)
    except ValueError:
        return ()
    if not {"MEMORYD_HOME", "P"} <= values.keys():
        return ()
    return values["P"], f"{values['MEMORYD_HOME']}/bin/{HOOK_FILE}"


def _call(host: str, event: str) -> str:
    return f'"$P" -I -S "$H" {host} {event}'


def lost_gate(place: Place, event: str, settings: object) -> str:
    """What a guard says where the gate cannot run: why, and which line to delete from ``settings``."""
    return (
        f"memoryd: compaction refused: its hook program or its Python is gone ({hook_path(place)}, {place.python}). Install memoryd "
        f"again, or delete the {event} entry that names {HOOK_FILE} from {settings}; MEMORYD_GATE=off lets compactions pass"
    )


def lost_gate_json(place: Place, event: str, settings: object) -> str:
    return json.dumps({"continue": False, "stopReason": lost_gate(place, event, settings)})


def launcher_change(place: Place) -> tuple[Change, ...]:
    """A script that starts the hook program for Claude Code's plugin, whose settings cannot name this machine's files."""
    said = lost_gate(place, "PreCompact", "the plugin memoryd")
    gate = gate_command(place, "claude", "PreCompact", f"printf '%s\\n' {shlex.quote(said)} >&2; exit 2", (0, 2))
    content = (
        "#!/bin/sh\n# written by 'memoryd install claude-code --scope plugin'\n"
        f'if [ "$2" = PreCompact ]; then\n{gate}\nfi\n{_start(place)} && exec "$P" -I -S "$H" "$@"; exit 0\n'
    ).encode()
    path = place.memoryd_home / "bin" / _LAUNCHER
    if path.is_file() and path.read_bytes() == content:
        return ()
    return (Change(path, content, "starts the hook program for the plugin", 0o700),)


def launcher_drop(place: Place) -> tuple[Change, ...]:
    path = place.memoryd_home / "bin" / _LAUNCHER
    return (Change(path, None, "no longer needed"),) if place.options.get("scope") == "plugin" and path.exists() else ()


# -- what installers share ---------------------------------------------------------------------------------------------------


def scope_of(place: Place, *known: str) -> str:
    """The scope that was asked for, ``user`` where none was.  Raises :class:`ConfigError` for one that the host does not have."""
    scope = place.options.get("scope", "user")
    if scope not in known:
        raise ConfigError(f'--scope: "{scope}" is unknown here; there are: {", ".join(known)}')
    return scope


def wants_gate(place: Place) -> bool:
    return place.options.get("gate") != "no"


def notes_of(place: Place, label: str) -> tuple[str, ...]:
    """What a person has to know when memoryd begins to listen: what is recorded, where, and how to keep something out."""
    return (
        f"from now on what you and {label} say is recorded, and before a compaction the whole transcript with what tools answered",
        f"it is kept in {place.memoryd_home / 'profiles'}, readable by you alone; nothing leaves this machine unless you configure a "
        "remote backend",
        "to keep something out: a file .memoryd-ignore in its folder, capture.exclude in memoryd.toml, or 'memoryd pause'",
    )


def after_uninstall(place: Place, changes: tuple[Change, ...]) -> Plan:
    """``changes``, and what stays: the hook program too, since the settings of some other project may name it, and its gate."""
    said = f"what was recorded stays in {place.memoryd_home}, with the hook program: 'memoryd forget --all' erases what was said"
    return Plan(changes, (said,) if changes else ())


def program(place: Place, name: str) -> str | None:
    """A host's program on the PATH of the place."""
    for folder in place.environ.get("PATH", "").split(os.pathsep):
        found = os.path.join(folder, name)
        if folder and os.access(found, os.X_OK) and os.path.isfile(found):
            return found
    return None
