"""What a check of a part of a lab has found, and what to do about it."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        name: what was looked at.
        level: ``missing`` stops a run; ``warning`` limits or disturbs it.
        found: what was found.
        remedy: what to do, or "".
    """

    name: str
    level: Level
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """For ``--json``."""
        return asdict(self)
