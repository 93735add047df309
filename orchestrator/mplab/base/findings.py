"""Findings of the checks of a lab: state and remedy."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """Result of one check of the lab.

    Attributes:
        name: checked part of the lab.
        level: ``ok``; ``missing``: a run cannot start; ``warning``: a run is limited or disturbed.
        found: state that the check found.
        remedy: action that fixes it, or "".
    """

    name: str
    level: Level
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return field → value, for the output of ``--json``."""
        return asdict(self)
