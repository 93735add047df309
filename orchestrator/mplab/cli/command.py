"""Classes of the commands of ``mplab``: how their help and errors name options, arguments and values.

A group of verbs is a `VerbApp`. In its help, a switch has no value, and the value of each other option or argument has
a name in capitals (``FILE``, ``NUMBER``), not a type of Python.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

Verb = TypeVar("Verb", bound=Callable[..., Any])

_PREFIX = "Value error, "
"""Start of a message of pydantic, which typer passes on."""


def name_value(parameter: Any) -> None:  # noqa: ANN401 - a class of typer's click
    """Set the name of a parameter's value in help and usage, unless the parameter has one."""
    if parameter.param_type_name == "argument":
        parameter.metavar = parameter.metavar or (parameter.name or "").upper()
        parameter.display_type_rich = lambda ctx: ""
    elif parameter.metavar is None:
        parameter.metavar = "" if parameter.is_flag else _kind(parameter.type_descriptor)


def _kind(about: Any) -> str:  # noqa: ANN401 - typer's description of a parameter's type
    if about.is_choice:
        return "|".join(map(str, about.choices or ()))
    if about.is_path or about.is_file:
        return "FILE"
    return "NUMBER" if about.is_ranged or about.annotation in {int, float} else "TEXT"


class Command(TyperCommand):
    """A verb."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - as click gives it
        """Return the parameters, with names for their values (`name_value`)."""
        return _named(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - as click gives it
        """Parse the command line. Raises typer.BadParameter, without words of pydantic."""
        return _plain(lambda: super(Command, self).parse_args(ctx, args))


class VerbGroup(TyperGroup):
    """A group of verbs."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - as click gives it
        """Return the parameters, with names for their values (`name_value`)."""
        return _named(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - as click gives it
        """Parse the command line. Raises typer.BadParameter, without words of pydantic."""
        return _plain(lambda: super(VerbGroup, self).parse_args(ctx, args))


class VerbApp(typer.Typer):
    """A group of verbs, to which modules add verbs by ``@app.command()``."""

    def __init__(self, *, cls: type[TyperGroup] = VerbGroup, **settings: Any) -> None:  # noqa: ANN401
        """Make a group without verbs; `settings` are those of typer."""
        super().__init__(cls=cls, **settings)

    def command(
        self,
        name: str | None = None,
        *,
        cls: type[TyperCommand] | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Callable[[Verb], Verb]:
        """Return a decorator that adds a function as a verb; `settings` are those of typer."""
        return super().command(name, cls=cls or Command, **settings)


def _named(parameters: Any) -> Any:  # noqa: ANN401 - a list of click's parameters
    for parameter in parameters:
        name_value(parameter)
    return parameters


def _plain(parse: Callable[[], Any]) -> Any:  # noqa: ANN401 - as click gives it
    try:
        return parse()
    except typer.BadParameter as error:
        error.message = error.message.removeprefix(_PREFIX)
        raise
