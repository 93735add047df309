"""Write the network events of page loads to the cell's folder."""

import json
from collections.abc import Sequence

from mplab.drivers.ui import Event
from mplab.drivers.ui.devtools import har_from_events
from mplab.scenarios.base.protocol import Context


def store(context: Context, browser: str, name: str, events: Sequence[Event]) -> None:
    """Write the events of one page load to the cell's folder.

    Events of Chromium become the HAR file ``har/<name>.har``. Firefox reports too little for one: its events are
    written, unchanged, to ``network/<name>.json``.

    Args:
        context: resources of the cell.
        browser: ``chromium`` or ``firefox``.
        name: name of the load: ``<site>-<number>``.
        events: the browser's events during the load, in the format of DevTools.

    Raises:
        StepError: the converter to HAR failed.
    """
    content: object
    if browser == "firefox":
        path, content = context.cell_dir / "network" / f"{name}.json", events
    else:
        path = context.cell_dir / "har" / f"{name}.har"
        content = har_from_events(events, node=context.tools.node, appium_dir=context.tools.node_modules.parent)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
