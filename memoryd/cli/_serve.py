"""``memoryd serve``."""

from __future__ import annotations

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import write_json, write_line


@command(name="serve")
@click.option("--socket", metavar="PATH", help="Where clients come [$MEMORYD_SOCKET, $XDG_RUNTIME_DIR/memoryd/memoryd.sock].")
@click.option("--metrics", metavar="HOST:PORT", help="Also answer GET /metrics there, for Prometheus.")
@pass_options
def serve(options: Options, socket: str | None, metrics: str | None) -> None:
    """Serve every agent of this user over a unix socket, in the foreground, until SIGTERM or Ctrl-C.

    Profiles are opened when a client asks for one.  The signal drains: what has arrived is recorded and answered; a second one
    ends at once, and what was accepted is on disk all the same.  A socket unit of systemd is used where it started this process.

    \b
    Examples:
      memoryd serve
      memoryd serve --metrics 127.0.0.1:9464
    """
    import trio

    from memoryd.daemon import parse_address, serve_until_signal
    from memoryd.settings import load_config, resolve_home, resolve_socket

    home = resolve_home(options.home)
    config = load_config(home).config
    address = None if metrics is None else parse_address(metrics)

    def ready(path: str, port: int | None) -> None:
        if options.json:
            write_json({"socket": path, "metrics_port": port})
        else:
            write_line(f"serving {path}" + ("" if port is None else f", metrics on port {port}"))

    # signals are ours: a KeyboardInterrupt anywhere would leave a profile half-way through its closing
    trio.run(serve_until_signal, home, resolve_socket(socket), config, address, ready, restrict_keyboard_interrupt_to_checkpoints=True)
