"""Find the verbs of the command line by their files; import a verb only when it is called or its own help is shown.

A verb is a module with the name of the verb; if that is a keyword of Python, ``_`` is appended (``continue_``). The
module's docstring is the help of the verb, and its first line is shown in the list of verbs. The module defines a
function with the name of the module, or ``app`` for a group of verbs.
"""

import importlib
import inspect
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from mplab.cli.command import VerbApp


def add_verbs(app: typer.Typer, package: str, panel: str) -> None:
    """Add each module of a package as a verb to an app; the app's help lists them below the title `panel`."""
    spec = find_spec(package)
    for module in iter_modules(spec.submodule_search_locations if spec else None):
        add_verb(app, f"{package}.{module.name}", panel=panel)


def add_verb(app: typer.Typer, module: str, *, panel: str | None = None, alias: str = "") -> None:
    """Add a module as a verb to an app. The module is imported only when the verb is called or its help is shown.

    Args:
        app: gets the verb.
        module: full name of the module.
        panel: title above the verb in the help of the app.
        alias: another name of the verb, which no help lists; "": add the verb under its own name.
    """
    attribute = module.rpartition(".")[2]
    name = alias or attribute.rstrip("_")
    short = short_help(module)

    class Verb(TyperCommand):
        def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as click gives it
            loaded = importlib.import_module(module)
            text = inspect.cleandoc(loaded.__doc__ or "")
            if group := getattr(loaded, "app", None):
                group.info.help, group.rich_markup_mode = text, self.rich_markup_mode
                return get_group(group).make_context(*args, **kwargs)
            verb = VerbApp(add_completion=False, rich_markup_mode=self.rich_markup_mode)
            verb.command(name, help=text)(getattr(loaded, attribute))
            return get_command(verb).make_context(*args, **kwargs)

    app.command(name, cls=Verb, help=short, rich_help_panel=panel, hidden=bool(alias))(lambda: None)


def short_help(module: str) -> str:
    """Return the first line of a module's docstring without importing the module."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    with Path(spec.origin).open(encoding="utf-8") as source:
        return source.readline().strip().strip('"')
