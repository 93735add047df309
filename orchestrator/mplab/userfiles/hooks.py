"""Commands of the host around a run and its cells."""

import shlex
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mplab.base.suggest import describe, show
from mplab.format.units import DurationS, format_duration_s

NAMES = ("before_run", "after_run", "before_cell", "after_cell")

_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_EXAMPLE = "a command is needed: 'program argument', or [program, argument]"

Argv = tuple[str, ...]


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


@dataclass(frozen=True)
class Hooks:
    """Commands of the host, by when they are run; each is ended after `timeout_s` seconds."""

    before_run: tuple[Argv, ...] = ()
    after_run: tuple[Argv, ...] = ()
    before_cell: tuple[Argv, ...] = ()
    after_cell: tuple[Argv, ...] = ()
    timeout_s: float = 60.0

    @classmethod
    def of(cls, file: HooksFile) -> "Hooks":
        """As a file says."""
        return cls(file.before_run, file.after_run, file.before_cell, file.after_cell, file.timeout)

    def commands(self, name: str) -> tuple[Argv, ...]:
        """Those of one of `NAMES`."""
        found: tuple[Argv, ...] = getattr(self, name)
        return found

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self.commands(name) for name in NAMES)

    @property
    def of_cells(self) -> bool:
        """Whether there are any around cells."""
        return bool(self.before_cell or self.after_cell)

    def to_json(self) -> dict[str, Any]:
        """As in manifest.json; empty when there are none."""
        found: dict[str, Any] = {
            name: [list(one) for one in self.commands(name)] for name in NAMES if self.commands(name)
        }
        return {**found, "timeout": format_duration_s(self.timeout_s)} if found else {}

    def text(self) -> str:
        """All of them in words: ``before_run: 'logger begins'; after_cell: 'sync'``."""
        listed = {name: ", ".join(f"'{shlex.join(one)}'" for one in self.commands(name)) for name in NAMES}
        return "; ".join(f"{name}: {said}" for name, said in listed.items() if said)


NO_HOOKS = Hooks()
