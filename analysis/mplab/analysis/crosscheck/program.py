"""Find and run the tools that mptrace is compared with."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.analysis.errors import CaptureError, ToolMissingError

TIMEOUT_S = 3600.0
MAX_MESSAGE_CHARACTERS = 400
WIRESHARK = "it comes with Wireshark (Debian, Ubuntu: `apt install tshark`)"


def find_program(name: str, install: str) -> str:
    """Return the path of a program.

    Raises:
        ToolMissingError: it is not installed; the message includes ``install``.
    """
    found = shutil.which(name)
    if found is None:
        raise ToolMissingError(f"{name} is not installed: {install}")
    return found


def run_program(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program in ``folder``, and return its standard output.

    Raises:
        CaptureError: it fails, or does not end within `TIMEOUT_S`.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CaptureError(f"{name} did not end within {TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split())[-MAX_MESSAGE_CHARACTERS:]
        raise CaptureError(f"{name} ended with exit code {done.returncode}: {words or 'it said nothing'}")
    return done.stdout
