"""Commands of the host around a run and its cells."""

import shlex
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mplab.base.suggest import describe, show
from mplab.format.experiment import Argv, Hooks
from mplab.format.units import DurationS

_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_EXAMPLE = "a command is needed: 'program argument', or [program, argument]"


def parse_command(found: object) -> Argv:
    """A command line as its words: a text is split as a shell would, but no shell runs it. Raises ValueError."""
    if isinstance(found, str):
        words = _split(found)
    elif isinstance(found, list | tuple):
        words = [_word(word) for word in found]
    else:
        raise ValueError(f"found {describe(found)}: {_EXAMPLE}")  # noqa: TRY004
    if not words or not words[0]:
        raise ValueError(f"empty: {_EXAMPLE}")
    if "/" in words[0] and not words[0].startswith("/"):
        raise ValueError(f"program {show(words[0])}: an absolute path is needed, or a name that PATH leads to")
    if any("\0" in word for word in words):
        raise ValueError(f"found {show(found)}: no word of a command holds a zero byte")
    return tuple(words)


def _word(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError(f"found {describe(found)} in a command: write its words in quotes")  # noqa: TRY004
    return found


def _split(found: str) -> list[str]:
    try:
        words = shlex.split(found)
    except ValueError as error:
        raise ValueError(f"command {show(found)}: {str(error).lower()}") from None
    if taken := next((word for word in words if word in _OF_A_SHELL), None):
        raise ValueError(f"command {show(found)}: no shell reads it, so {taken!r} says nothing; write [sh, -c, '…']")
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


class HooksFile(BaseModel):
    """Commands that this host runs around the run and its cells; no shell reads them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before_run: tuple[Command, ...] = Field((), description="Before the lab is there; when one fails, nothing is run.")
    after_run: tuple[Command, ...] = Field((), description="When the lab is gone, however the run ended.")
    before_cell: tuple[Command, ...] = Field((), description="Before each attempt; when one fails, it has failed.")
    after_cell: tuple[Command, ...] = Field((), description="After each attempt, however it ended.")
    timeout: Annotated[DurationS, Field(gt=0)] = Field(60.0, description="For each command.")

    def to_hooks(self) -> Hooks:
        """As an experiment has it."""
        return Hooks(self.before_run, self.after_run, self.before_cell, self.after_cell, self.timeout)
