"""What has to be up outside of a lab's namespaces before the lab is: what the driver of its proxy says."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mplab.drivers.proxy import HandedOver, HostSettings, driver_of
from mplab.userfiles.labuse import LabUse


def prepared(use: LabUse, *, congestion_control: str, services: Sequence[str]) -> dict[str, object]:
    """Prepare what a lab needs outside of it; return what it is made of, for ``lab`` in the manifest.

    Args:
        use: the lab.
        congestion_control: of the experiment.
        services: of the origin that its scenarios use.

    Raises:
        LabNotReadyError: it cannot be had, or a run uses it.
    """
    return driver_of(use.proxy).prepare(use.proxy, HostSettings(congestion_control, services, wired=not use.real))


def hosted(
    use: LabUse, *, congestion_control: str, services: Sequence[str], run_id: str = ""
) -> AbstractContextManager[HandedOver | None]:
    """Have it up for as long as the context, and as it was before afterwards; None when there is nothing to have.

    Raises:
        LabNotReadyError: it does not come up, or a run uses it.
    """
    host = HostSettings(congestion_control, services, wired=not use.real)
    return driver_of(use.proxy).host(use.proxy, host, run_id)
