"""Listen to a radio station, as with TuneIn (baerts2015 ch. 6)."""

import json
from collections.abc import Mapping
from pathlib import Path

from mplab.scenarios.base import Context
from mplab.scenarios.base.listening import ListeningParameters, ListeningScenario, Player
from mplab.userfiles.experiments.app import load_app


class RadioParameters(ListeningParameters):
    """Parameters of the scenario `radio`."""


class RadioScenario(ListeningScenario):
    """Listen to the live stream of a radio station in a web app."""

    def places(self, context: Context, facts: Mapping[str, str]) -> Mapping[str, object]:
        """Return the URL of the radio player, and the port and mount point of the station's stream."""
        return {"url": facts["radio_url"], "port": facts["radio_port"], "mount": facts["radio_mount"]}

    def sent(self, facts: Mapping[str, str], player: Player) -> Mapping[str, object]:
        """Return the station's melody, and the number of requests for the stream that the player has sent."""
        return {"melody": json.loads(facts["radio_melody"]), "requests": player["requests"]}


SCENARIO = RadioScenario(
    name="radio", title="Radio", parameters=RadioParameters, app=load_app(Path(__file__).parent), button="play"
)
