"""Verbs whose modules are imported when they are called, or when their own help is asked for."""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group


def add_later(app: typer.Typer, name: str, target: str, text: str) -> None:
    """Add a verb, or a group of verbs, to an app without importing it.

    Args:
        app: what the verb is added to.
        name: of the verb.
        target: ``MODULE:FUNCTION`` of a verb, ``MODULE:APP`` of a group of verbs.
        text: short help of the verb (the first line of the function's docstring), or the help of the group.
    """

    class Later(TyperCommand):
        def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as click gives it
            found = getattr(importlib.import_module(module), attribute)
            if isinstance(found, typer.Typer):
                found.info.help, found.rich_markup_mode = text, self.rich_markup_mode
                return get_group(found).make_context(*args, **kwargs)
            verb = typer.Typer(add_completion=False, rich_markup_mode=self.rich_markup_mode)
            verb.command(name)(found)
            return get_command(verb).make_context(*args, **kwargs)

    module, _, attribute = target.partition(":")
    app.command(name, cls=Later, help=text)(lambda: None)
