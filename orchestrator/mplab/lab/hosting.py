"""What has to be up outside of a lab's namespaces before the lab is: the containers of its lab file."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.settings import LOCAL_ENGINE, PROFILES, ProxyFile
from mplab.lab.handover import HOLDERS, HandedOver
from mplab.userfiles.labuse import LabUse

if TYPE_CHECKING:
    from mplab.drivers.proxy.docker import DockerStack

_ALWAYS = ("proxy", "origin", "dns")
_PROBE = "probe"
_SIDECARS = frozenset({"capture"})
"""Not started with the others: cells have side-cars of their own."""


def prepared(use: LabUse, *, congestion_control: str, services: Sequence[str]) -> dict[str, Any]:
    """Have in the engine what containers of a lab are made of; ``containers`` in the manifest.

    Args:
        use: the lab.
        congestion_control: of the experiment.
        services: of the origin that its scenarios use.

    Raises:
        LabNotReadyError: it cannot be had, or a run uses it.
    """
    if use.proxy is None:
        return {}
    from mplab.drivers.proxy.docker.borrow import exclusive  # noqa: PLC0415 - slow to import, needed by few labs

    stack = _stack(use, use.proxy, congestion_control, services)
    with exclusive(stack):
        return {"containers": stack.describe(stack.prepare(further=sorted(_SIDECARS)))}


@contextmanager
def hosted(
    use: LabUse, *, congestion_control: str, services: Sequence[str], run_id: str = ""
) -> Iterator[HandedOver | None]:
    """The containers of a lab, up for as long as the context, and as they were before afterwards; None without any.

    Raises:
        LabNotReadyError: they do not come up, or a run uses them.
    """
    if use.proxy is None:
        yield None
        return
    from mplab.drivers.proxy.docker.borrow import borrowed, exclusive  # noqa: PLC0415 - slow to import

    stack = _stack(use, use.proxy, congestion_control, services)
    with exclusive(stack, run_id=run_id), borrowed(stack), ExitStack() as opened:
        yield _hand_over(stack, opened, wired=not use.real)


def _stack(use: LabUse, proxy: ProxyFile, congestion_control: str, services: Sequence[str]) -> "DockerStack":
    from mplab.drivers.proxy.docker import DockerStack, StackSettings  # noqa: PLC0415 - slow to import

    profiles = profiles_of(proxy, services, probed=use.real)
    stack = DockerStack(StackSettings.of(proxy, profiles=profiles, congestion_control=congestion_control))
    if not use.real:
        _check_wires(stack)
    return stack


def _check_wires(stack: "DockerStack") -> None:
    """Raise LabNotReadyError when no virtual phone can be wired to its containers."""
    if os.geteuid() != 0:
        raise LabNotReadyError("a virtual phone is wired to containers by root alone: run as root, or without --lab")
    if not stack.url.startswith(LOCAL_ENGINE):  # of the environment: a lab file that says so is refused before
        raise LabNotReadyError(
            f"engine {stack.url}: a virtual phone is wired to containers of this machine's engine alone: unix:///…"
        )


def profiles_of(proxy: ProxyFile, services: Sequence[str], *, probed: bool = False) -> tuple[str, ...]:
    """What has to run for some services of the origin, in the order of the compose file.

    Args:
        proxy: what the lab file says.
        services: of the origin that are used.
        probed: link probes are answered beside the proxy, too: the phone's packets take real networks.
    """
    wanted = {*_ALWAYS, *proxy.profiles, *(name for name in services if name in PROFILES)} - _SIDECARS
    wanted |= {_PROBE} if probed else set()
    return tuple(name for name in PROFILES if name in wanted)


def _hand_over(stack: "DockerStack", opened: ExitStack, *, wired: bool) -> HandedOver:
    """What a lab gets; `wired`: it is in namespaces, and lays wires into those of containers."""
    from mplab.drivers.proxy.docker.engine import connected  # noqa: PLC0415 - slow to import
    from mplab.drivers.proxy.docker.namespaces import open_network  # noqa: PLC0415
    from mplab.drivers.proxy.docker.watch import Watch  # noqa: PLC0415

    url, networks, socket = stack.url, {}, -1
    with connected(stack.url) as client:
        found = Watch(client, stack.settings.project).containers()
        for node, service in HOLDERS.items() if wired else ():
            networks[node] = open_network(found[service], service)
            opened.callback(os.close, networks[node])
        holder = str(found[HOLDERS["proxy"]].id)
    if wired:
        # A lab has a /run of its own, and no way to the engine's socket but this one.
        socket = os.open(stack.url.removeprefix(LOCAL_ENGINE), os.O_PATH | os.O_CLOEXEC)
        opened.callback(os.close, socket)
        url = f"unix:///proc/self/fd/{socket}"
    made = stack.last_rendered()
    if made is None:
        raise LabNotReadyError(f"{stack.directory}: the containers' configurations are gone")
    return HandedOver(
        url,
        stack.settings.project,
        str(stack.directory),
        holder,
        {name: stack.image(name) for name in ("net", "capture")},
        stack.describe(made),
        socket,
        networks,
    )
