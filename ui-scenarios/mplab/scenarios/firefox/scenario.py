"""Load front pages in Firefox ESR with a cold cache. Pages and measurements are as in the scenario `web`."""

import json
from collections.abc import Mapping, Sequence

from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.ui import Event
from mplab.format.units import DurationS
from mplab.scenarios.base import Context
from mplab.scenarios.base.pages import PagesParameters, PagesScenario, Slug

TOP_SITES: tuple[Slug, ...] = (
    "search",
    "video",
    "social",
    "wiki",
    "shopn-1",
    "shopn-2",
    "image",
    "news-2",
    "finance",
    "movie",
    "tech",
    "ent",
)
"""Twelve sites, of the kinds at the top of lists of most visited sites (baerts2015 §4.3 visits the top twelve)."""


class FirefoxParameters(PagesParameters):
    """Parameters of the scenario `firefox`."""

    sites: tuple[Slug, ...] = Field(
        TOP_SITES, min_length=1, description="Sites to load, of han2015 table 1, in random order."
    )
    think: DurationS = Field(0.5, description="Rest after each load event.")

    @property
    def rest_s(self) -> float:
        """Return the pause after each load event, s."""
        return self.think


class FirefoxScenario(PagesScenario):
    """Load front pages in Firefox."""

    def further_fields(self, page: str, events: Sequence[Event]) -> Mapping[str, object]:
        """Return the field ``connections``: the number of connections that the browser opened for the page.

        Raises:
            StepError: the browser opened no connection, so it used connections of an earlier load.
        """
        responses = [event["params"]["response"] for event in events if event["method"] == "Network.responseReceived"]
        connections = sum(not response["connectionReused"] for response in responses)
        if not connections:
            raise StepError(f"{page}: the page opened no connection: the browser had kept one")
        return {"connections": connections}

    def store(self, context: Context, name: str, events: Sequence[Event]) -> None:
        """Write the browser's events of the load, unchanged, to ``network/<name>.json`` in the cell's folder."""
        path = context.cell_dir / "network" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(events))


SCENARIO = FirefoxScenario(
    name="firefox",
    title="Web pages in Firefox",
    parameters=FirefoxParameters,
    browser="firefox",
    start_s=4.0,
    page_s=0.5,
)
