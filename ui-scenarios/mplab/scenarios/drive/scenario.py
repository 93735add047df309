"""Upload new files of random bytes, each in one piece, as Google Drive does."""

from pathlib import Path

from mplab.scenarios.base.upload import UploadParameters, UploadScenario
from mplab.userfiles.experiments.app import load_app


class DriveParameters(UploadParameters):
    """Parameters of the scenario `drive`."""


SCENARIO = UploadScenario(
    name="drive",
    title="Upload in one stream (Google Drive)",
    parameters=DriveParameters,
    app=load_app(Path(__file__).parent),
)
