"""Run several shell commands on a phone in one script and separate their outputs."""

import re
from collections.abc import Mapping

_MARK = "=mplab="


def asking(commands: Mapping[str, str]) -> str:
    """Return a script that runs all `commands` (name → command line); their standard error is discarded."""
    return "; ".join(f"echo {_MARK}{name}; ({command}) 2>/dev/null" for name, command in commands.items())


def split_answers(text: str) -> dict[str, str]:
    """Split the output of an `asking` script: return name of command → its output."""
    parts = re.split(rf"^{_MARK}(\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
