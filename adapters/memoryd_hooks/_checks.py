"""What ``memoryd doctor`` proves for coding agents.  Quick: files, a host's own ``--version``, one connection to a socket."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError, MemorydError
from memoryd.hosts import Check, Place, find_source, import_history, parse_json, read_text
from memoryd.settings import load_config, resolve_socket
from memoryd_hooks._install import HOOK_FILE, hook_program, is_ours, named_in, program
from memoryd_hooks._install_toml import parse_toml

__all__ = ["of_claude", "of_codex", "of_gemini"]

Hooks = Mapping[str, Sequence[Mapping[str, Any]]]  # ours, by event

_ASKING = 10.0  # seconds for a host to say its version
_CONNECTING = 1.0
_DAY = 86_400
_PURGE_DAYS = 30  # Claude Code's default
_NOTICE_DAYS = 7
_LOOKED_AT = 50  # transcripts that are read to see what is recorded of them
VETO_SINCE, FAILURE_SINCE = (2, 1, 105), (2, 1, 295)


def of_claude(place: Place, folder: Path, events: Iterable[str], files: Sequence[Path]) -> tuple[Check, ...]:
    settings = [settings for path in files if (settings := _settings(path, parse_json)) is not None]
    hooks = _merged(settings)
    return (
        *_can_be_read(files, parse_json),
        _hooks_are_there("claude-code", hooks, events),
        *_programs_are_there("claude-code", hooks),
        _switched_on(settings, "disableAllHooks", False),
        *_claude_gate(place, hooks),
        daemon(place),
        _purge(place, folder, settings),
    )


def of_codex(place: Place, path: Path, events: Iterable[str]) -> tuple[Check, ...]:
    settings = _settings(path, parse_toml) or {}
    hooks = _merged([settings])
    return (
        *_can_be_read([path], parse_toml),
        _hooks_are_there("codex", hooks, events),
        *_programs_are_there("codex", hooks),
        _switched_on([settings.get("features", {})], "hooks", True),
        _trusted(place, path, hooks),
        _version(place, "codex"),
        daemon(place),
    )


def of_gemini(place: Place, path: Path, events: Iterable[str]) -> tuple[Check, ...]:
    hooks = _merged([_settings(path, parse_json) or {}])
    said = "advisory: Gemini CLI compresses whatever a hook answers"
    return (
        *_can_be_read([path], parse_json),
        _hooks_are_there("gemini", hooks, events),
        *_programs_are_there("gemini", hooks),
        Check("gate", "skip", said),
        daemon(place),
    )


# -- hooks -------------------------------------------------------------------------------------------------------------------


def _settings(path: Path, parse: Any) -> Mapping[str, Any] | None:
    """What a file of settings says; None where there is none, or it cannot be read (then no hook of it runs either)."""
    try:
        text = read_text(path)
        found = parse(text) if text else None
    except ConfigError:
        return None
    return found if isinstance(found, dict) else None


def _can_be_read(files: Iterable[Path], parse: Callable[[str], Any]) -> Iterator[Check]:
    """What is wrong with files that are there: nothing can be installed into them, nor taken out, before that is mended."""
    for path in files:
        try:
            if text := read_text(path):
                parse(text)
        except ConfigError as error:
            said = str(error) if str(path) in str(error) else f"{path}: {error}"
            yield Check("settings", "fail", said, "mend it first: memoryd edits no file that it cannot read")


def _merged(settings: Iterable[Mapping[str, Any]]) -> Hooks:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in settings:
        events = one.get("hooks")
        for event, groups in events.items() if isinstance(events, dict) else ():
            found.setdefault(event, []).extend(hook for hook in _inside(groups) if is_ours(hook.get("command")))
    return {event: hooks for event, hooks in found.items() if hooks}


def _inside(groups: object) -> Iterator[Mapping[str, Any]]:
    for group in groups if isinstance(groups, list) else ():
        for hook in group.get("hooks") or () if isinstance(group, dict) else ():
            if isinstance(hook, dict):
                yield hook


def _hooks_are_there(name: str, hooks: Hooks, events: Iterable[str]) -> Check:
    missing = sorted(set(events) - hooks.keys())
    if not hooks:
        return Check("hooks", "fail", "no hook of memoryd is in the settings", f"memoryd install {name}")
    if missing:
        return Check("hooks", "fail", f"no hook of memoryd for {', '.join(missing)}", f"memoryd install {name}")
    return Check("hooks", "ok", f"{len(hooks)} events are told to memoryd")


def _programs_are_there(name: str, hooks: Hooks) -> Iterator[Check]:
    """Whether the Python and the hook program that the commands name exist, and are those of this memoryd."""
    named = {part for found in hooks.values() for hook in found for part in named_in(hook["command"])}
    lost = sorted(path for path in named if not Path(path).exists())
    if lost:
        yield Check("program", "fail", f"the hooks name what is gone: {', '.join(lost)}", f"memoryd install {name}")
    elif any(Path(path).name == HOOK_FILE and Path(path).read_bytes() != hook_program() for path in named):
        yield Check("program", "warn", "the hook program is of another version of memoryd", f"memoryd install {name}")
    elif named:
        yield Check("program", "ok", "the hook program and its Python are there")


def _switched_on(settings: Iterable[Mapping[str, Any]], key: str, wanted: bool) -> Check:
    if any(one.get(key) is (not wanted) for one in settings if isinstance(one, dict)):
        return Check("switched-on", "fail", f"{key} = {str(not wanted).lower()}: no hook runs, so nothing is gated", f"remove {key}")
    return Check("switched-on", "ok", f"{key} is not set against hooks")


# -- versions ----------------------------------------------------------------------------------------------------------------


def _claude_gate(place: Place, hooks: Hooks) -> Iterator[Check]:
    version = _version(place, "claude")
    yield version
    numbers = _numbers(version.said)
    closed = [hook for hook in hooks.get("PreCompact", ()) if hook.get("onFailure") == "block" and not hook.get("async")]
    if not closed:
        yield Check("gate", "fail", "no PreCompact hook with onFailure: block, so nothing is gated", "memoryd install claude-code")
    elif version.state != "ok" or not numbers:
        yield Check("gate", "warn", "gated from Claude Code 2.1.105 on; which version runs is not known", "put claude on the PATH")
    elif numbers < VETO_SINCE:
        yield Check("gate", "fail", "advisory: this version compacts whatever the gate says", "update Claude Code to 2.1.295 or later")
    elif numbers < FAILURE_SINCE:
        said = "gated; but this version ignores onFailure, so that a gate that is killed or times out does not refuse"
        yield Check("gate", "warn", said, "update Claude Code to 2.1.295 or later")
    else:
        yield Check("gate", "ok", "gated; a gate that crashes refuses too")


def _version(place: Place, name: str) -> Check:
    found = program(place, name)
    if found is None:
        return Check("version", "skip", f"{name} is not on the PATH")
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_ASKING, check=False, env=dict(place.environ)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("version", "warn", f"{found} --version: {type(error).__name__}", f"look at what {name} says by itself")
    numbers = _numbers(done.stdout.decode("utf-8", "replace"))
    if done.returncode or not numbers:
        return Check("version", "warn", f"{found} --version: exit code {done.returncode}", f"look at what {name} says by itself")
    return Check("version", "ok", ".".join(map(str, numbers)))


def _numbers(text: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _trusted(place: Place, path: Path, hooks: Hooks) -> Check:
    """Codex runs no hook that it was not told to trust, without a word; that it ran one is the only thing seen from outside."""
    if not hooks:
        return Check("trusted", "skip", "there is no hook to trust")
    seen = last_gate(place, "codex")
    if seen >= _touched(path):
        return Check("trusted", "ok", f"Codex asked the gate at {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(seen))}")
    said = "Codex runs no hook before it is trusted, and has not asked the gate since its settings were changed"
    return Check("trusted", "warn", said, "in Codex type /hooks and trust those of memoryd, then /compact once")


# -- what is around ----------------------------------------------------------------------------------------------------------


def daemon(place: Place) -> Check:
    """Whether a daemon answers: without one the gate works by itself, turns wait in the spool, and nothing is recalled into a prompt."""
    try:
        path = resolve_socket(environ=place.environ)
    except ConfigError as error:
        return Check("daemon", "fail", str(error), "set MEMORYD_SOCKET")
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_CONNECTING)
            client.connect(str(path))
    except OSError as error:
        said = f"nobody answers at {path} ({error.strerror or error}): the gate works, turns wait in the spool, prompts get no memory"
        return Check("daemon", "warn", said, "memoryd serve")
    return Check("daemon", "ok", f"answers at {path}")


def _purge(place: Place, folder: Path, settings: Sequence[Mapping[str, Any]]) -> Check:
    """Claude Code deletes transcripts that nobody touched for 30 days (``cleanupPeriodDays``)."""
    given = [one["cleanupPeriodDays"] for one in settings if isinstance(one.get("cleanupPeriodDays"), int)]
    days = given[-1] if given else _PURGE_DAYS
    limit = time.time() - (days - _NOTICE_DAYS) * _DAY
    old = sorted(path for path in (folder / "projects").glob("*/*.jsonl") if _touched(path) < limit)
    missing = _not_recorded(place, old[:_LOOKED_AT]) if old else 0
    if not missing:
        return Check("purge", "ok", f"nothing unrecorded is within {_NOTICE_DAYS} days of the host's own deletion after {days} days")
    said = f"Claude Code deletes {len(old)} transcripts within {_NOTICE_DAYS} days; at least {missing} turns of them are not recorded"
    return Check("purge", "warn", said, f"memoryd import claude {shlex.quote(str(folder / 'projects'))}")


def _not_recorded(place: Place, paths: Sequence[Path]) -> int:
    """How many turns an import would add; where that cannot be told, one for each transcript."""
    profile, user = place.environ.get("MEMORYD_PROFILE") or "default", place.environ.get("MEMORYD_USER") or "default"
    if not (place.memoryd_home / "profiles").is_dir():
        return len(paths)
    try:
        config = load_config(place.memoryd_home, profile, environ=place.environ).config
        found = import_history(place.memoryd_home, profile, config, find_source("claude"), paths, user=user, dry_run=True)
    except MemorydError:
        return len(paths)
    return found.added


def _touched(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def last_gate(place: Place, host: str) -> float:
    """When that host's gate was last asked, by the receipts of any profile, in seconds since the epoch; 0 for never."""
    latest = 0
    for path in (place.memoryd_home / "profiles").glob("*/gate.receipts.jsonl"):
        for line in path.read_bytes().splitlines():
            try:
                receipt = json.loads(line)
                latest = max(latest, receipt["at"] if receipt["host"] == host else 0)
            except (ValueError, LookupError, TypeError):
                continue  # a line that was cut off
    return latest / 1_000_000
