"""Several commands asked of a phone at once: one script, and what each of them said."""

import re
from collections.abc import Mapping

_MARK = "=mplab="


def asking(commands: Mapping[str, str]) -> str:
    """The script that runs them; what they complain of is dropped."""
    return "; ".join(f"echo {_MARK}{name}; ({command}) 2>/dev/null" for name, command in commands.items())


def split_answers(text: str) -> dict[str, str]:
    """What each command said."""
    parts = re.split(rf"^{_MARK}(\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
