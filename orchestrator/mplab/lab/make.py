"""Make the lab around the phone that a run uses."""

from collections.abc import Sequence
from pathlib import Path

from mplab.drivers.services import Service
from mplab.lab.driver import phone_driver
from mplab.lab.protocol import Lab
from mplab.lab.settings import LabSettings
from mplab.userfiles.labuse import LabUse


def make_lab(
    use: LabUse, *, seed: int, congestion_control: str, logs: Path, services: Sequence[Service] = (), run_id: str = ""
) -> Lab:
    """Return the lab around the phone of a lab file, not yet entered; see `LabSettings`."""
    return phone_driver(use.kind).open_lab(
        LabSettings(
            seed=seed,
            congestion_control=congestion_control,
            logs=logs,
            services=services,
            use=use,
            run_id=run_id,
        )
    )
