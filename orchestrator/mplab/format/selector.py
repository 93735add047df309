"""How an element of an app's screen is found, as ``app.yaml`` has it."""

from dataclasses import dataclass
from typing import Literal

By = Literal["css", "xpath", "id", "text", "description", "contains"]


@dataclass(frozen=True)
class Selector:
    """How to find an element, and how else, when it cannot be found that way.

    Attributes:
        by: ``css`` or ``xpath`` (browsers only); ``id``, ``text``, ``description`` (for screen readers), or
            ``contains``: a part of text or description.
        value: what it is.
        otherwise: further ways, the best one first: apps change, and speak more than one language.
    """

    by: By
    value: str
    otherwise: tuple["Selector", ...] = ()

    @property
    def alternatives(self) -> tuple["Selector", ...]:
        """Every way, this one first."""
        return Selector(self.by, self.value), *self.otherwise
