"""From a lab that is asked for to one that can be brought up."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mplab.drivers.services import Service
from mplab.lab.phones.virtual.lab import VirtualLab
from mplab.lab.protocol import Lab
from mplab.userfiles.labuse import LabUse


def _emulated(**settings: Any) -> Lab:  # noqa: ANN401 - those of every lab
    from mplab.lab.phones.emulated.lab import EmulatedLab  # noqa: PLC0415 - slow to import, needed by few labs

    return EmulatedLab(**settings)


def _bench(**settings: Any) -> Lab:  # noqa: ANN401 - those of every lab
    from mplab.lab.phones.adb.lab import BenchLab  # noqa: PLC0415 - Docker's client is slow to import

    return BenchLab(**settings)


_LABS: Mapping[str, Callable[..., Lab]] = {"virtual": VirtualLab, "emulated": _emulated, "adb": _bench}
"""The phone's driver → what makes a lab around it."""


def make_lab(
    use: LabUse, *, seed: int, congestion_control: str, logs: Path, services: Sequence[Service] = (), run_id: str = ""
) -> Lab:
    """A lab, to be entered.

    Args:
        use: which.
        seed: of what is chance in its shapers.
        congestion_control: pinned on every socket between agent and proxy.
        logs: host folder for the logs of the lab's programs.
        services: what the origin has beside web sites and files.
        run_id: of the run, for messages to others.
    """
    return _LABS[use.kind](
        seed=seed, congestion_control=congestion_control, logs=logs, services=services, use=use, run_id=run_id
    )
