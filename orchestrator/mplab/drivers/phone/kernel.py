"""What is known of a phone before a transport is set up on it: root, interfaces, Multipath TCP of its kernel."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mplab.base.paths import RMNET, WLAN

Kind = Literal["none", "upstream", "out-of-tree"]


@dataclass(frozen=True)
class KernelMptcp:
    """The Multipath TCP of a kernel.

    Attributes:
        kind: none, upstream (Linux 5.6 and later), or the patches of multipath-tcp.org (0.8x, 0.9x).
        version: of these patches, ``0.95``; "" when it is unknown.
        enabled: it is switched on.
        path_manager, scheduler: of the patches: as set now (``fullmesh``, ``default``).
        endpoints: the phone's ``ip`` knows ``ip mptcp``.
        multipath: its ``ip`` knows ``ip link set dev X multipath on|off|backup``.
        sysctls: ``net.mptcp.*`` → value.
        congestion_controls: what TCP can use.
    """

    kind: Kind = "none"
    version: str = ""
    enabled: bool = False
    path_manager: str = ""
    scheduler: str = ""
    endpoints: bool = False
    multipath: bool = False
    sysctls: Mapping[str, str] = field(default_factory=dict)
    congestion_controls: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhoneFacts:
    """What decides whether a transport is possible on a phone.

    Attributes:
        rooted: mplab uses root on it.
        kernel: its Multipath TCP; None: it is not known before the phone is there.
        agent: mplab's agent runs on it.
        interfaces: which it has: ``wlan0``, ``rmnet0``.
    """

    rooted: bool = True
    kernel: KernelMptcp | None = None
    agent: bool = True
    interfaces: Collection[str] = (WLAN, RMNET)
