"""Put files on the phone, and choose them in Android's file chooser."""

from collections.abc import Iterable
from pathlib import Path

from mplab.format.selector import Selector
from mplab.scenarios.base.android.scenario import Visit
from mplab.scenarios.base.protocol import Context

FOLDER = "/sdcard/Download"
_CHOOSER_S = 15.0
_SCAN = "android.intent.action.MEDIA_SCANNER_SCAN_FILE"


def put(context: Context, path: Path) -> str:
    """Copy a file to the phone's downloads; have Android index it. Return its path there. Raises DeviceError."""
    target = f"{FOLDER}/{path.name}"
    context.phone.push(path, target)
    context.phone.shell(["am", "broadcast", "-a", _SCAN, "-d", f"file://{target}"], check=False)
    return target


def remove(context: Context, targets: Iterable[str]) -> None:
    """Remove files that `put` has copied."""
    context.phone.shell(["rm", "-f", *targets], check=False)


def choose(visit: Visit, name: str) -> None:
    """Choose a file by its name. Raises StepError when the chooser does not open or does not list the file."""
    if "file chooser" in visit.app.elements:
        visit.ui.wait(visit.element("file chooser"), timeout_s=_CHOOSER_S)
    visit.ui.tap(Selector("text", name), timeout_s=_CHOOSER_S)
