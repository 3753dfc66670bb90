"""``hermes memoryd ...``: the host asks for these at every start, so nothing heavy is imported before one of them runs.

What memoryd's own command line can do is left to it: it is started for the profile's store, with the profile's settings.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["memoryd_command", "register_cli"]

_DONE, _FAILED = 0, 1


def register_cli(subparser: argparse.ArgumentParser) -> None:
    """The commands below ``hermes memoryd``."""
    profile = argparse.ArgumentParser(add_help=False)
    # suppressed: where it is not given after the command, what was given before it stays
    profile.add_argument("--target-profile", metavar="NAME", default=argparse.SUPPRESS, help="another profile than the active one")
    subparser.add_argument("--target-profile", metavar="NAME", default=None, help="another profile than the active one")
    commands = subparser.add_subparsers(dest="memoryd_action", metavar="COMMAND")
    for name, (_, line) in _ACTIONS.items():
        _arguments(name, commands.add_parser(name, help=line, description=line, parents=[profile]))
    subparser.set_defaults(func=memoryd_command)


def _arguments(name: str, parser: argparse.ArgumentParser) -> None:
    if name == "recall":
        parser.add_argument("words", nargs="+", metavar="WORDS")
    if name in ("recall", "checkpoints"):
        parser.add_argument("--user", metavar="NAME", help="whose memory; by default the user of the settings")
    if name == "gate":
        parser.add_argument("--release", metavar="SESSION", help="let compactions of SESSION go on where their archive fails")
        parser.add_argument("--once", action="store_true", help="with --release: the next one only")
        parser.add_argument("--clear", metavar="SESSION", help="end a release")


def memoryd_command(args: argparse.Namespace) -> None:
    """Run the command that was given; ends the process with its exit code where that is not 0."""
    from memoryd.errors import MemorydError

    action, _ = _ACTIONS[getattr(args, "memoryd_action", None) or "status"]
    try:
        code = action(_home(getattr(args, "target_profile", None)), args)
    except (MemorydError, FileNotFoundError, ValueError) as error:
        print(f"memoryd: {error}", file=sys.stderr)
        code = _FAILED
    if code:
        sys.exit(code)


def _home(profile: str | None) -> Path:
    if profile is None:
        from memoryd_hermes._hermes import hermes_home

        return hermes_home()
    return Path(importlib.import_module("hermes_cli.profiles").resolve_profile_env(profile))


# -- what memoryd's command line does ----------------------------------------------------------------------------------------


def _status(home: Path, args: argparse.Namespace) -> int:
    return _memoryd(home, "status")


def _recall(home: Path, args: argparse.Namespace) -> int:
    return _memoryd(home, "recall", "--user", _user(home, args), "--", " ".join(args.words))


def _checkpoints(home: Path, args: argparse.Namespace) -> int:
    return _memoryd(home, "checkpoint", "list", "--user", _user(home, args))


def _user(home: Path, args: argparse.Namespace) -> str:
    from memoryd_hermes._settings import read_settings

    return args.user or read_settings(home).user


def _gate(home: Path, args: argparse.Namespace) -> int:
    if args.release:
        return _memoryd(home, "gate", "release", *(["--once"] if args.once else []), "--", args.release)
    if args.clear:
        return _memoryd(home, "gate", "release", "--clear", "--", args.clear)
    return _memoryd(home, "gate", "status")


def _memoryd(home: Path, *words: str) -> int:
    from memoryd_hermes._places import store_home
    from memoryd_hermes._settings import read_settings

    store = store_home(home, read_settings(home))
    sys.stdout.flush()  # the child writes to the same place
    return subprocess.call([sys.executable, "-m", "memoryd", "--home", str(store), *words], env=_environment(home, store))


def _environment(home: Path, store: Path) -> Mapping[str, str]:
    """This process's, with the profile's settings.  Another profile's secrets are not here: its memory is read locally."""
    from memoryd_hermes._config import profile_secrets, store_config, without_remotes
    from memoryd_hermes._hermes import hermes_home
    from memoryd_hermes._settings import read_settings

    here = os.path.realpath(home) == os.path.realpath(hermes_home())
    config = store_config(store, read_settings(home), profile_secrets() if here else {})
    config = config if here else without_remotes(config)
    honcho = config.backends.get("honcho", {})
    chosen = {
        "MEMORYD_BACKEND": config.backend,
        "MEMORYD_RECALL_BUDGET_CHARS": str(config.recall.budget_chars),
        "MEMORYD_GATE_FALLBACK_DIR": config.gate.fallback_dir,
        "HONCHO_URL": honcho.get("url", ""),
        "HONCHO_API_KEY": honcho.get("api_key", ""),
    }
    return {**os.environ, **chosen}


# -- what only the host knows ------------------------------------------------------------------------------------------------


def _config(home: Path, args: argparse.Namespace) -> int:
    from memoryd_hermes._places import store_home
    from memoryd_hermes._settings import FIELDS, read_settings, settings_path

    settings = read_settings(home)
    for field in FIELDS:
        if field.kind != "secret":
            print(f"{field.key}: {_shown(getattr(settings, field.key))}")
    print(f"settings: {settings_path(home)}\nstore: {store_home(home, settings)}")
    return _DONE


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _doctor(home: Path, args: argparse.Namespace) -> int:
    from memoryd.hosts import make_place
    from memoryd_hermes._checks import checks

    found = checks(make_place(options={"hermes_home": str(home)}))
    for check in found:
        print(f"{check.state:<5} {check.name}: {check.said}" + (f"\n      remedy: {check.remedy}" if check.remedy else ""))
    return _FAILED if any(check.state == "fail" for check in found) else _DONE


_Action = Callable[[Path, argparse.Namespace], int]
_ACTIONS: Mapping[str, tuple[_Action, str]] = {
    "status": (_status, "what memoryd holds of this profile, and how it is"),
    "config": (_config, "the settings, and where they are"),
    "recall": (_recall, "find turns and memories"),
    "checkpoints": (_checkpoints, "the archived transcripts"),
    "doctor": (_doctor, "what is wrong, and what to do about it"),
    "gate": (_gate, "the gate before a compaction: its state, and a way past it"),
}
