"""Listen to music in random order, as with Spotify (baerts2015 §4.3)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context
from mplab.scenarios.base.listening import ListeningParameters, ListeningScenario, Player
from mplab.userfiles.experiments.app import load_app

SMALLEST_BYTES, LARGEST_BYTES = 1_000, 1_000_000


class SpotifyParameters(ListeningParameters):
    """Parameters of the scenario `spotify`."""

    chunk: Annotated[SizeBytes, between("chunk", SMALLEST_BYTES, LARGEST_BYTES, write=format_size)] = Field(
        128_000, description="Size of a chunk of a track, one request by Range (128 kB: 6.4 s of sound)."
    )
    ahead: DurationS = Field(30.0, description="Buffered sound at which the player requests no further chunks.")

    @model_validator(mode="after")
    def _room(self) -> "SpotifyParameters":
        if self.ahead < self.buffer:
            raise ValueError(f"ahead {self.ahead:g} s: less than buffer, {self.buffer:g} s: nothing would be played")
        return self


class SpotifyScenario(ListeningScenario):
    """Listen to music tracks in a web app. The app requests each track from the server in chunks."""

    def places(self, context: Context, facts: Mapping[str, str]) -> Mapping[str, object]:
        """Return the URL of the player, and the seed of the random order of its tracks."""
        return {"url": facts["music_url"], "seed": context.rng.randrange(1 << 31)}

    def sent(self, facts: Mapping[str, str], player: Player) -> Mapping[str, object]:
        """Return the melody that was played, the order of its tracks, and the player's counters.

        The melody is joined from the tracks in played order.
        """
        melodies = json.loads(facts["music_melodies"])
        played = [melodies[track] for track in player["order"]]
        melody = {**played[0], "notes": "".join(track["notes"] for track in played)}
        return {"melody": melody, **{name: player[name] for name in ("order", "chunks", "failures", "bytes")}}


SCENARIO = SpotifyScenario(
    name="spotify", title="Music", parameters=SpotifyParameters, app=load_app(Path(__file__).parent), button="shuffle"
)
