"""Selectors of elements on an app's screen, as in ``app.yaml``."""

from dataclasses import dataclass
from typing import Literal

By = Literal["css", "xpath", "id", "text", "description", "contains"]


@dataclass(frozen=True)
class Selector:
    """A condition that finds an element on an app's screen, and fallbacks.

    Attributes:
        by: ``css`` or ``xpath`` (browsers only); ``id``, ``text``, ``description`` (for screen readers), or
            ``contains``: a part of text or description.
        value: value to match.
        otherwise: fallbacks for other versions and languages of the app, best one first.
    """

    by: By
    value: str
    otherwise: tuple["Selector", ...] = ()

    @property
    def alternatives(self) -> tuple["Selector", ...]:
        """This selector and its fallbacks, in the order in which they are tried."""
        return Selector(self.by, self.value), *self.otherwise
