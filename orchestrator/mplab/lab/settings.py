"""Define the settings of a lab."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.drivers.services import Service
from mplab.userfiles.labuse import VIRTUAL, LabUse


@dataclass(frozen=True)
class LabSettings:
    """The settings of a lab.

    Attributes:
        seed: seed of all random choices of its shapers.
        congestion_control: congestion control of every socket between agent and proxy.
        logs: host folder for the logs of the lab's programs.
        services: origin services, in addition to web sites and files.
        use: the lab file with its phone.
        run_id: id of the run, for messages to other users of a resource.
    """

    seed: int
    congestion_control: str
    logs: Path
    services: Sequence[Service] = ()
    use: LabUse = VIRTUAL
    run_id: str = ""
