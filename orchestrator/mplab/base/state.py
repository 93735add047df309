"""Where mplab keeps what outlives a run and a reboot."""

import os
from pathlib import Path


def state_directory() -> Path:
    """``$XDG_STATE_HOME/mplab``, by default in ``~/.local/state``."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "mplab"
