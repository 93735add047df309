"""Start what a lab needs outside its namespaces before it is up, as the driver of its proxy requires."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mplab.drivers.proxy import HandedOver, HostSettings, driver_of
from mplab.userfiles.labuse import LabUse


def prepared(use: LabUse, *, congestion_control: str, services: Sequence[str]) -> dict[str, object]:
    """Prepare what a lab needs outside its namespaces. Return its description, for ``lab`` in the manifest.

    Args:
        use: the lab.
        congestion_control: congestion control of the experiment.
        services: origin services that its scenarios use.

    Raises:
        LabNotReadyError: it is not available, or another run uses it.
    """
    return driver_of(use.proxy).prepare(use.proxy, HostSettings(congestion_control, services, wired=not use.real))


def hosted(
    use: LabUse, *, congestion_control: str, services: Sequence[str], run_id: str = ""
) -> AbstractContextManager[HandedOver | None]:
    """Start it until the context ends, then restore the earlier state. Yields None if nothing is needed.

    Raises:
        LabNotReadyError: it does not start, or another run uses it.
    """
    host = HostSettings(congestion_control, services, wired=not use.real)
    return driver_of(use.proxy).host(use.proxy, host, run_id)
