"""Before a lab is up, start those parts of its proxy, e.g. containers, that run outside the lab's namespaces."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mplab.drivers.proxy import HostedResources, HostSettings, driver_of
from mplab.userfiles.labs.labuse import LabUse


def prepared(use: LabUse, *, congestion_control: str, services: Sequence[str]) -> dict[str, object]:
    """Prepare the parts of a lab's proxy that run outside the lab's namespaces.

    Return the description of these parts for the manifest.

    Args:
        use: the lab.
        congestion_control: congestion control of the experiment.
        services: origin services that the experiment's scenarios use.

    Raises:
        LabNotReadyError: a part is not available, or another run uses it.
    """
    return driver_of(use.proxy).prepare(use.proxy, HostSettings(congestion_control, services, wired=not use.real))


def hosted(
    use: LabUse, *, congestion_control: str, services: Sequence[str], run_id: str = ""
) -> AbstractContextManager[HostedResources | None]:
    """Return a context that runs those parts of a lab's proxy that are outside the lab's namespaces.

    At its end, the context restores the earlier state.

    Yields:
        The running parts, to be passed into the lab; None: the proxy has no such parts.

    Raises:
        LabNotReadyError: a part does not start, or another run uses it.
    """
    host = HostSettings(congestion_control, services, wired=not use.real)
    return driver_of(use.proxy).host(use.proxy, host, run_id)
