"""`headgate serve`: the API of filters, and the reconciler behind it."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console, stderr_log_handler

LOOPBACK = "127.0.0.1"


@click.command()
@click.option("--host", default=LOOPBACK, show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port; 0 takes any. [API_PORT, or the next free one]",
)
@click.option("--quiet", is_flag=True, help="No line for each request.")
def serve_command(host: str, port: int | None, quiet: bool) -> None:
    """Answer the API until stopped, and bring what is deployed to what is wanted.

    While no key exists it listens on this machine alone, answers reads and refuses every change:
    `headgate keys create` makes the first key. A second server on the same ops store answers too;
    only one of them reconciles.

    \b
    Examples:
      headgate serve
      headgate serve --port 9000
      headgate serve --host 0.0.0.0 --quiet
    """
    from headgate.api.server import Address, serve
    from headgate.config.settings import load_settings
    from headgate.local.process import choose_port

    settings = load_settings()
    _log(quiet)
    chosen = choose_port(settings.api_port, "API_PORT") if port is None else port
    serve(settings, Address(host, chosen), _told, reload=load_settings)
    console.done("stopped; nothing was left half done")


def _told(url: str) -> None:
    console.data({"url": url}, text=url)
    console.done(f"answers at {url}; Ctrl-C stops it")


def _log(quiet: bool) -> None:
    import logging

    handler = stderr_log_handler("%(levelname)s %(name)s %(message)s")
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if not quiet:
        logging.getLogger("headgate.api.access").setLevel(logging.INFO)
