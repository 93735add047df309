"""Show runs, campaigns, phones and routers as live web pages on this machine, until Ctrl-C.

The pages only show: nothing can be started or changed with them. `/metrics` is for Prometheus.
"""

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.deferred import deferred
from mplab.base.errors import InputError
from mplab.cli.output import err, out
from mplab.run.run_directory import RUNS

_CAMPAIGNS = Path("campaigns")

HostOption = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="Listen on this address. An address that is not loopback needs a token."
    ),
]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Listen on this TCP port; 0 means any free port.")
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="Read the token for browsers from this private file; by default, a token is generated if needed.",
        show_default=False,
    ),
]


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            help="Show the runs and campaigns of these folders, and of their subfolders 'runs' and 'campaigns'; by "
            "default, of the folders 'runs' and 'campaigns' here, or of MPLAB_RUNS and MPLAB_CAMPAIGNS.",
            show_default=False,
        ),
    ] = None,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    token_file: TokenFileOption = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Let browsers call this server by this host name, besides its addresses; it needs a token; may be "
            "repeated.",
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(hidden=True, envvar="MPLAB_RUNS")] = RUNS,
    campaigns: Annotated[Path, typer.Option(hidden=True, envvar="MPLAB_CAMPAIGNS")] = _CAMPAIGNS,
) -> None:
    for folder in folders or ():
        if not folder.is_dir():
            raise InputError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}")
    serve_until_interrupt(folders or [runs, campaigns], host=host, port=port, token_file=token_file, names=names or ())


def serve_until_interrupt(
    folders: Sequence[Path],
    *,
    host: str,
    port: int,
    token_file: Path | None = None,
    names: Sequence[str] = (),
    page: str = "",
) -> None:
    """Serve the dashboard and print its URL; return after Ctrl-C.

    Args:
        folders: folders of runs and campaigns.
        host: address to listen on.
        port: TCP port.
        token_file: private file with the token.
        names: host names of this server.
        page: path of the page to begin with, without a slash at its start.

    Raises:
        LabNotReadyError: the extra ``serve`` is not installed, or the port is taken.
        InputError: an argument is wrong.
    """
    with deferred("the web server is an extra"):
        from mplab.dashboard.serving import serve as serve_dashboard

    with (
        serve_dashboard(folders, host=host, port=port, token_file=token_file, names=names) as served,
        contextlib.suppress(KeyboardInterrupt),
    ):
        url = served.url if token_file is not None else served.first_url
        out.print(url.replace("/?", f"/{page}?") if "/?" in url else f"{url}{page}", markup=False, soft_wrap=True)
        if token_file is not None:
            err.print(f"Open it once with ?token=… added, the line of {token_file}.", markup=False, soft_wrap=True)
        elif served.first_url != served.url:
            err.print("The token in this URL is new with each start. Only who has it can read the pages.")
        err.print("Ctrl-C ends it.")
        threading.Event().wait()
