"""Convert DevTools events to HAR (HTTP Archive) by the Node.js package chrome-har."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mplab.base.browser import Event
from mplab.base.errors import StepError
from mplab.base.programs import APPIUM_DIR

_TIMEOUT_S = 60.0


def har_from_events(events: Sequence[Event], *, node: Path, appium_dir: Path = APPIUM_DIR) -> dict[str, Any]:
    """Return the HAR of the pages in `events`.

    Args:
        events: DevTools events of the domains Network and Page.
        node: the Node.js program.
        appium_dir: folder with ``har.mjs`` and ``node_modules``.

    Raises:
        StepError: the converter failed.
    """
    argv = [str(node), str(appium_dir / "har.mjs")]
    try:
        done = subprocess.run(
            argv, input=json.dumps(events), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepError(f"har: {' '.join(argv)}: {error}") from error
    if done.returncode != 0:
        raise StepError(f"har: {' '.join(argv)} failed ({done.returncode}): {done.stderr.strip()[-300:]}")
    har: dict[str, Any] = json.loads(done.stdout)
    return har
