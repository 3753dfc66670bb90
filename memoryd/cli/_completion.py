"""``memoryd completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from memoryd.cli._group import Options, command, pass_options, root
from memoryd.cli._output import write_json, write_line

_SHELLS = ("bash", "zsh", "fish")


@command(name="completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@pass_options
def completion(options: Options, shell: str) -> None:
    """Print the completion script for a SHELL.

    \b
    Examples:
      memoryd completion bash > ~/.local/share/bash-completion/completions/memoryd
      memoryd completion zsh > ~/.zfunc/_memoryd
      memoryd completion fish > ~/.config/fish/completions/memoryd.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "memoryd", "_MEMORYD_COMPLETE").source()
    if options.json:
        write_json({"shell": shell, "script": script})
    else:
        write_line(script)
