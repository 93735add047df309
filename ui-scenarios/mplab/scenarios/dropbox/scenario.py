"""Upload new files of random bytes in blocks, with pauses between the blocks, as Dropbox does."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from mplab.format.units import DurationS
from mplab.scenarios.base.upload import Size, UploadParameters, UploadScenario
from mplab.userfiles.experiments.app import load_app


class DropboxParameters(UploadParameters):
    """Parameters of the scenario `dropbox`."""

    block: Size = Field(4_000_000, description="Size of a block (baerts2015 §4.7.2).")
    gap: Annotated[DurationS, Field(le=30)] = Field(
        1.0,
        description="Rest from the server's answer to a block until the next block. The papers mention 'some idle "
        "time' without its length.",
    )

    @model_validator(mode="after")
    def _rests_fit(self) -> "DropboxParameters":
        rests_s = (len(self.blocks) - 1) * self.gap
        if rests_s > self.limit / 2:
            problem = f"{len(self.blocks)} blocks with {self.gap:g} s between them rest for {rests_s:g} s"
            raise ValueError(f"{problem}, more than half of {self.limit:g} s: give larger blocks or a shorter gap")
        return self

    @property
    def block_bytes(self) -> int:
        """Return the size of the blocks in which a file is sent, bytes."""
        return self.block

    @property
    def gap_s(self) -> float:
        """Return the pause between two blocks, s."""
        return self.gap


SCENARIO = UploadScenario(
    name="dropbox",
    title="Upload in blocks (Dropbox)",
    parameters=DropboxParameters,
    app=load_app(Path(__file__).parent),
)
