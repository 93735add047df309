"""Load front pages in Chromium with a cold cache; time each page from navigation start to the load event."""

import json
from collections.abc import Sequence

from pydantic import Field

from mplab.drivers.ui import Event
from mplab.drivers.ui.devtools import har_from_events
from mplab.format.units import DurationS
from mplab.scenarios.base import Context
from mplab.scenarios.base.pages import PagesParameters, PagesScenario


class WebParameters(PagesParameters):
    """Parameters of the scenario `web`."""

    settle: DurationS = Field(0.3, description="Rest after each load event.")

    @property
    def rest_s(self) -> float:
        """Return the pause after each load event, s."""
        return self.settle


class WebScenario(PagesScenario):
    """Load front pages in Chromium."""

    def store(self, context: Context, name: str, events: Sequence[Event]) -> None:
        """Convert the load's DevTools events to a HAR file, ``har/<name>.har`` in the cell's folder."""
        har = har_from_events(events, node=context.tools.node, appium_dir=context.tools.node_modules.parent)
        path = context.cell_dir / "har" / f"{name}.har"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(har))


SCENARIO = WebScenario(
    name="web", title="Web pages", parameters=WebParameters, browser="chromium", start_s=1.5, page_s=0.3
)
