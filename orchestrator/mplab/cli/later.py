"""Verbs whose modules are imported when they are called: those that need libraries which are slow to import."""

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


def later(module: str, text: str) -> typer.Typer:
    """Stands for the ``app`` of a module until one of its verbs, or its help, is asked for.

    Args:
        module: its name.
        text: what the help of the app, and of the app that it is added to, says of it.
    """

    class Later(TyperGroup):
        def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as it is given
            app: typer.Typer = importlib.import_module(module).app
            app.info.help = text
            app.rich_markup_mode = self.rich_markup_mode
            return get_group(app).make_context(*args, **kwargs)

    return typer.Typer(help=text, cls=Later)
