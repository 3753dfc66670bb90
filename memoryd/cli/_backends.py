"""``memoryd backends``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import one_line, plain, table, to_json, write_json, write_line
from memoryd.cli._session import loaded

if TYPE_CHECKING:
    from memoryd.runtime import FoundBackend
    from memoryd.settings import Loaded


@attrs.frozen(slots=True)
class Line:
    """One backend as it is shown.  ``origin`` is bundled, user, project or package; ``shadowed`` where an earlier one has its name."""

    name: str
    origin: str
    place: str
    available: bool = False
    reason: str = ""
    label: str = ""
    is_cloud: bool = False
    shadowed: bool = False
    role: str = ""


@command(name="backends")
@pass_options
def backends(options: Options) -> None:
    """List every backend: where it comes from, whether it could be used and why not, and its role in this profile.

    Bundled ones come before $MEMORYD_HOME/plugins, that before ./.memoryd/plugins (read only with
    MEMORYD_ENABLE_PROJECT_PLUGINS=1), and that before installed packages: of two with one name the first is used, and the
    other is listed as shadowed.  Nothing is sent anywhere; a backend that cannot be imported is listed with the reason.

    \b
    Examples:
      memoryd backends
      memoryd backends --json
    """
    found = loaded(options)
    lines = list(_lines(found))
    warnings = found.config.warnings
    if options.json:
        write_json({"backends": to_json(lines), "count": len(lines), "warnings": list(warnings)})
        return
    headers = ("name", "role", "from", "available", "label", "reason", "place")
    table(headers, ((x.name, x.role, x.origin, _state(x), x.label, x.reason, x.place) for x in lines))
    for warning in warnings:
        write_line(f"warning: {plain(warning)}")


def _state(line: Line) -> str:
    return "shadowed" if line.shadowed else "yes" if line.available else "no"


def _lines(found: Loaded) -> Iterator[Line]:
    from memoryd.runtime import discover_backends

    discovery = discover_backends(found.home)
    roles = _roles(found)
    for backend in discovery.found.values():
        yield attrs.evolve(_tried(found, backend), role=roles.get(backend.name, ""))
    for backend in discovery.shadowed:
        winner = discovery.found[backend.name]
        reason = f"shadowed by the {winner.origin} one: {winner.place}"
        yield Line(backend.name, backend.origin, backend.place, reason=reason, shadowed=True)
    for broken in discovery.broken:
        yield Line(broken.name, broken.origin, broken.place, reason=broken.reason)
    for name in sorted(roles.keys() - discovery.found.keys()):
        yield Line(name, "nowhere", "", reason="is configured and not installed", role=roles[name])


def _roles(found: Loaded) -> dict[str, str]:
    """The role of each configured backend; under ``auto`` it is settled when memory is opened."""
    from memoryd.runtime import roles

    config = found.config
    wanted: dict[str, str] = dict(roles(config, config.backend))
    if wanted.pop("auto", None):
        wanted |= {"honcho": "primary if healthy", "local": "primary otherwise"}
    return wanted


def _tried(found: Loaded, backend: FoundBackend) -> Line:
    """Loaded and asked, not opened: what it is, whether it could be used, and why not."""
    from memoryd.errors import MemorydError
    from memoryd.runtime import ask_backend

    line = Line(backend.name, backend.origin, backend.place)
    try:
        info, available = ask_backend(backend, found.home, found.profile, found.config)
    except MemorydError as error:
        return attrs.evolve(line, reason=one_line(str(error)))
    return attrs.evolve(line, available=bool(available), reason=available.reason, label=info.label, is_cloud=info.is_cloud)
