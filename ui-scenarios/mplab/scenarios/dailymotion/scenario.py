"""Watch clips of a video site. The clips have qualities from 240p to 1080p, and segments of 4 s."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from mplab.scenarios.base.playback import PlaybackParameters, PlaybackScenario
from mplab.userfiles.experiments.app import load_app


class DailymotionParameters(PlaybackParameters):
    """Parameters of the scenario `dailymotion`."""

    clips: tuple[Literal["clip-1", "clip-2", "clip-3"], ...] = Field(
        ("clip-1", "clip-2", "clip-3"),
        min_length=1,
        description="Clips to watch, 25 s each, in this order (baerts2015 §4.3).",
    )
    highest: Literal["240p", "360p", "480p", "720p", "1080p"] = Field(
        "1080p", description="Best quality that the player may select."
    )


SCENARIO = PlaybackScenario(
    name="dailymotion",
    title="Video clips, 240p to 1080p",
    parameters=DailymotionParameters,
    site="motion",
    app=load_app(Path(__file__).parent),
)
