"""``memoryd version``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from memoryd import __version__
from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import write_json, write_line


@command(name="version")
@pass_options
def version(options: Options) -> None:
    """Versions of memoryd, of Python and of the packages that matter in a report.

    \b
    Examples:
      memoryd version --json
    """
    found = {"memoryd": __version__, "python": platform.python_version(), "platform": platform.platform()}
    found |= {name: _version_of(name) for name in ("apsw", "trio")}
    if options.json:
        write_json(found)
    else:
        for name, text in found.items():
            write_line(f"{name} {text}")


def _version_of(name: str) -> str:
    try:
        return installed(name)
    except PackageNotFoundError:
        return "not installed"
