"""Errors that another argument of a function of `mplab.run` would prevent."""

from collections.abc import Mapping
from enum import StrEnum

from mplab.base.errors import InputError


class Argument(StrEnum):
    """An argument in Python."""

    ALLOW_HOOKS = "allow_hooks=True"
    ALLOW_LAB = "allow_lab=True"
    LAB = "lab=FILE"
    ONLY_REPORT = "only_report=True"


class ArgumentError(InputError):
    """The call is refused, and another argument would permit it.

    Args:
        problem: start of the message, up to the arguments.
        remedies: argument → its effect, the rest of the message: ``allow_lab=True uses it``.
    """

    def __init__(self, problem: str, remedies: Mapping[Argument, str]) -> None:
        self._problem, self._remedies = problem, remedies
        super().__init__(self.text({argument: argument.value for argument in Argument}))

    def text(self, names: Mapping[Argument, str]) -> str:
        """Return the message with other names of the arguments, such as options of a command line."""
        return self._problem + ", ".join(f"{names[argument]} {effect}" for argument, effect in self._remedies.items())
