"""``memoryd config``: show, check, path."""

from __future__ import annotations

import json
from typing import Any

import click

from memoryd.cli._group import Options, command, pass_options, shared
from memoryd.cli._output import table, to_json, write_json, write_line


@click.group(name="config")
@shared
def config() -> None:
    """The configuration: its values, its problems, its files."""


@command(name="show")
@click.option("--default", "sample", is_flag=True, help="The sample file: every key at its default, documented.")
@pass_options
def show(options: Options, sample: bool) -> None:
    """Every key with its value and where that comes from: default, a file, a variable.

    \b
    Examples:
      memoryd config show
      memoryd config show --default > ~/.config/memoryd/memoryd.toml
    """
    from memoryd.settings import default_toml, describe, load_config

    if sample:
        write_line(default_toml().rstrip("\n"))
        return
    shown = describe(load_config(options.home, options.profile_name))
    if options.json:
        write_json({"config": {item.key: {"value": to_json(item.value), "source": item.source} for item in shown}})
    else:
        table(("key", "value", "source"), ((item.key, _literal(item.value), item.source) for item in shown))


def _literal(value: Any) -> str:
    return json.dumps(to_json(value), ensure_ascii=False)


@command(name="check")
@pass_options
def check(options: Options) -> None:
    """Read every source; exit code 64 and one line where something is wrong.  A variable MEMORYD_* that means nothing is a warning.

    \b
    Examples:
      memoryd config check
    """
    from memoryd.runtime import find_backend
    from memoryd.settings import load_config, unknown_variables

    loaded = load_config(options.home, options.profile_name)
    for name in (loaded.config.backend, *loaded.config.mirrors):
        if name != "auto":
            find_backend(name, loaded.home)
    files = [str(path) for path in loaded.files]
    warnings = (*loaded.config.warnings, *unknown_variables(loaded.config))
    if options.json:
        write_json({"ok": True, "files": files, "warnings": list(warnings)})
    else:
        write_line("\n".join(["ok", *files, *(f"warning: {warning}" for warning in warnings)]))


@command(name="path")
@pass_options
def path(options: Options) -> None:
    """The home and the files that are read, whether they exist or not.

    \b
    Examples:
      memoryd config path --profile work
    """
    from memoryd.settings import config_paths, resolve_home

    home = resolve_home(options.home)
    files = config_paths(home, options.profile_name)
    if options.json:
        write_json({"home": str(home), "files": [{"path": str(file), "exists": file.exists()} for file in files]})
    else:
        table(("what", "path", "exists"), [("home", home, ""), *(("file", file, "yes" if file.exists() else "no") for file in files)])


for sub in (show, check, path):
    config.add_command(sub)
