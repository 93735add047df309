"""What a lab is made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.drivers.services import Service
from mplab.userfiles.labuse import VIRTUAL, LabUse


@dataclass(frozen=True)
class LabSettings:
    """What a lab is made from.

    Attributes:
        seed: of everything random in its shapers.
        congestion_control: pinned on every socket between agent and proxy.
        logs: host folder for the logs of the lab's programs.
        services: of the origin, next to web sites and files.
        use: the lab file with its phone.
        run_id: of the run, for messages to others.
    """

    seed: int
    congestion_control: str
    logs: Path
    services: Sequence[Service] = ()
    use: LabUse = VIRTUAL
    run_id: str = ""
