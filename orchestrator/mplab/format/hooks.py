"""Hooks: commands that the host runs around a run and its cells."""

import shlex
from typing import Annotated, TypeAlias, cast

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mplab.base.suggest import describe, show
from mplab.format.record import OMIT_EMPTY, Record
from mplab.format.units import DurationS

HOOK_NAMES = ("before_run", "after_run", "before_cell", "after_cell")
Argv: TypeAlias = tuple[str, ...]

_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_EXAMPLE = "a command is needed: 'program argument', or [program, argument]"


def parse_command(value: object) -> Argv:
    """Return the words of a command line. Text is split as a shell would, but no shell runs it. Raises ValueError."""
    if isinstance(value, str):
        words = _split(value)
    elif isinstance(value, list | tuple):
        words = [_word(word) for word in value]
    else:
        raise ValueError(f"found {describe(value)}: {_EXAMPLE}")  # noqa: TRY004
    if not words or not words[0]:
        raise ValueError(f"empty: {_EXAMPLE}")
    if "/" in words[0] and not words[0].startswith("/"):
        raise ValueError(f"program {show(words[0])}: an absolute path is needed, or a name that PATH leads to")
    if any("\0" in word for word in words):
        raise ValueError(f"found {show(value)}: no word of a command holds a zero byte")
    return tuple(words)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {describe(value)} in a command: write its words in quotes")  # noqa: TRY004
    return value


def _split(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"command {show(text)}: {str(error).lower()}") from None
    if taken := next((word for word in words if word in _OF_A_SHELL), None):
        raise ValueError(f"command {show(text)}: no shell runs it, so {taken!r} has no effect. Write [sh, -c, '…']")
    return words


Command = Annotated[
    Argv,
    BeforeValidator(parse_command),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]


class Hooks(Record):
    """Commands that the host runs, without a shell, before and after a run or its cells.

    A record without commands omits `timeout`.
    """

    before_run: Annotated[tuple[Command, ...], OMIT_EMPTY] = Field(
        default=(), description="Before the lab starts; if one fails, no cell is run."
    )
    after_run: Annotated[tuple[Command, ...], OMIT_EMPTY] = Field(
        default=(), description="After the lab has ended, also after an error."
    )
    before_cell: Annotated[tuple[Command, ...], OMIT_EMPTY] = Field(
        default=(), description="Before each attempt; if one fails, the attempt fails."
    )
    after_cell: Annotated[tuple[Command, ...], OMIT_EMPTY] = Field(
        default=(), description="After each attempt, also after an error."
    )
    timeout: Annotated[DurationS, Field(gt=0)] = Field(default=60.0, description="Time limit of each command.")

    def commands(self, name: str) -> tuple[Argv, ...]:
        """Return the commands of the hook `name`, one of `HOOK_NAMES`. Raises KeyError."""
        by_name = {
            "before_run": self.before_run,
            "after_run": self.after_run,
            "before_cell": self.before_cell,
            "after_cell": self.after_cell,
        }
        return by_name[name]

    def __bool__(self) -> bool:
        """Return whether any hook has a command."""
        return any(self.commands(name) for name in HOOK_NAMES)

    @property
    def of_cells(self) -> bool:
        """Return whether there are commands to run before or after cells."""
        return bool(self.before_cell or self.after_cell)

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return handler(self) if self else {}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema of all fields, although an instance without commands is written as ``{}``."""
        return handler(cast("CoreSchema", {key: value for key, value in core.items() if key != "serialization"}))

    def text(self) -> str:
        """Return the commands of all hooks as text: ``before_run: 'logger begins'; after_cell: 'sync'``."""
        listed = {name: ", ".join(f"'{shlex.join(command)}'" for command in self.commands(name)) for name in HOOK_NAMES}
        return "; ".join(f"{name}: {commands}" for name, commands in listed.items() if commands)


NO_HOOKS = Hooks()
