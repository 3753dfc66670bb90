"""Agent programs that memoryd serves: what an adapter for one says of it, and how it is found.  Names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.hosts._answer import answer_hook as answer_hook
    from memoryd.hosts._apply import Applied as Applied
    from memoryd.hosts._apply import Done as Done
    from memoryd.hosts._apply import apply_plan as apply_plan
    from memoryd.hosts._apply import backups_of as backups_of
    from memoryd.hosts._apply import foresee as foresee
    from memoryd.hosts._apply import write_file as write_file
    from memoryd.hosts._consent import IGNORE_FILE as IGNORE_FILE
    from memoryd.hosts._consent import Consent as Consent
    from memoryd.hosts._consent import Pause as Pause
    from memoryd.hosts._consent import consent as consent
    from memoryd.hosts._consent import excluded_by as excluded_by
    from memoryd.hosts._consent import pause as pause
    from memoryd.hosts._consent import paused_now as paused_now
    from memoryd.hosts._consent import read_pauses as read_pauses
    from memoryd.hosts._consent import resume as resume
    from memoryd.hosts._consent import was_paused as was_paused
    from memoryd.hosts._dialect import Dialect as Dialect
    from memoryd.hosts._dialect import Heard as Heard
    from memoryd.hosts._dialect import Kind as Kind
    from memoryd.hosts._dialect import Row as Row
    from memoryd.hosts._dialect import find_dialect as find_dialect
    from memoryd.hosts._edit import in_file as in_file
    from memoryd.hosts._edit import plan_drop as plan_drop
    from memoryd.hosts._edit import plan_put as plan_put
    from memoryd.hosts._edit import read_text as read_text
    from memoryd.hosts._gate_main import gate_main as gate_main
    from memoryd.hosts._gate_main import spool_main as spool_main
    from memoryd.hosts._import import TakenIn as TakenIn
    from memoryd.hosts._import import import_history as import_history
    from memoryd.hosts._ingest import ingest_hooks as ingest_hooks
    from memoryd.hosts._ingest import keep_hooks as keep_hooks
    from memoryd.hosts._install import check_python as check_python
    from memoryd.hosts._install import find_host as find_host
    from memoryd.hosts._install import host_names as host_names
    from memoryd.hosts._install import make_place as make_place
    from memoryd.hosts._jsonc import append_json as append_json
    from memoryd.hosts._jsonc import drop_json as drop_json
    from memoryd.hosts._jsonc import parse_json as parse_json
    from memoryd.hosts._jsonc import put_json as put_json
    from memoryd.hosts._port import Change as Change
    from memoryd.hosts._port import Check as Check
    from memoryd.hosts._port import CheckState as CheckState
    from memoryd.hosts._port import GateCapability as GateCapability
    from memoryd.hosts._port import Host as Host
    from memoryd.hosts._port import HostInfo as HostInfo
    from memoryd.hosts._port import Place as Place
    from memoryd.hosts._port import Plan as Plan
    from memoryd.hosts._project import look_at_git as look_at_git
    from memoryd.hosts._project import project_of as project_of
    from memoryd.hosts._sources import Source as Source
    from memoryd.hosts._sources import find_source as find_source
    from memoryd.hosts._sources import import_id as import_id
    from memoryd.hosts._sources import source_names as source_names
    from memoryd.hosts._spool import has_spool as has_spool
    from memoryd.hosts._transcript import read_lines as read_lines
    from memoryd.hosts._turns import Said as Said
    from memoryd.hosts._turns import turns_in as turns_in

_NAMES = {
    "_answer": ("answer_hook",),
    "_apply": ("Applied", "Done", "apply_plan", "backups_of", "foresee", "write_file"),
    "_consent": ("IGNORE_FILE", "Consent", "Pause", "consent", "excluded_by", "pause", "paused_now", "read_pauses", "resume", "was_paused"),
    "_dialect": ("Dialect", "Heard", "Kind", "Row", "find_dialect"),
    "_gate_main": ("gate_main", "spool_main"),
    "_edit": ("in_file", "plan_drop", "plan_put", "read_text"),
    "_import": ("TakenIn", "import_history"),
    "_ingest": ("ingest_hooks", "keep_hooks"),
    "_install": ("check_python", "find_host", "host_names", "make_place"),
    "_jsonc": ("append_json", "drop_json", "parse_json", "put_json"),
    "_port": ("Change", "Check", "CheckState", "GateCapability", "Host", "HostInfo", "Place", "Plan"),
    "_project": ("look_at_git", "project_of"),
    "_sources": ("Source", "find_source", "import_id", "source_names"),
    "_spool": ("has_spool",),
    "_transcript": ("read_lines",),
    "_turns": ("Said", "turns_in"),
}
_HOMES = {name: f"memoryd.hosts.{module}" for module, names in _NAMES.items() for name in names}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.hosts' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
