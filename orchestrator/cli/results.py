"""``mplab results``."""

import typer

app = typer.Typer(help="All runs of a folder.", no_args_is_help=True)


@app.callback()
def _options() -> None:
    pass
