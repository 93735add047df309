"""Watch clips of a video site. The clips have qualities from 240p to 720p, and segments of 2 s."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from mplab.scenarios.base.playback import PlaybackParameters, PlaybackScenario
from mplab.userfiles.experiments.app import load_app


class YoutubeParameters(PlaybackParameters):
    """Parameters of the scenario `youtube`."""

    clips: tuple[Literal["clip-1", "clip-2", "clip-3", "long"], ...] = Field(
        ("clip-1", "clip-2", "clip-3"),
        min_length=1,
        description="Clips to watch, in this order: 25 s each (baerts2015 §4.3), long: 2:15 (nikravesh2016 §3.2).",
    )
    highest: Literal["240p", "360p", "480p", "720p"] = Field(
        "720p", description="Best quality that the player may select."
    )


SCENARIO = PlaybackScenario(
    name="youtube",
    title="Video clips, 240p to 720p",
    parameters=YoutubeParameters,
    site="tube",
    app=load_app(Path(__file__).parent),
)
