"""Location of the state that outlives runs and reboots."""

import os
from pathlib import Path


def state_directory() -> Path:
    """Return ``$XDG_STATE_HOME/mplab``; by default, ``~/.local/state/mplab``."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "mplab"
