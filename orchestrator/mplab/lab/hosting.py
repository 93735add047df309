"""Start the parts of a proxy, such as containers, that must run outside a lab's namespaces before the lab is up."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mplab.drivers.proxy import HostedResources, HostSettings, driver_of
from mplab.userfiles.labuse import LabUse


def prepared(use: LabUse, *, congestion_control: str, services: Sequence[str]) -> dict[str, object]:
    """Prepare the parts of a lab's proxy that run outside its namespaces. Return their description for the manifest.

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
    """Return a context in which the parts of a lab's proxy outside the lab's namespaces run.

    At its end, the context restores the earlier state.

    Yields:
        The running parts, to be passed into the lab; None: the proxy has no such parts.

    Raises:
        LabNotReadyError: a part does not start, or another run uses it.
    """
    host = HostSettings(congestion_control, services, wired=not use.real)
    return driver_of(use.proxy).host(use.proxy, host, run_id)
