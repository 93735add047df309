"""Facts about a phone that decide which transports are possible: root, interfaces, MPTCP of its kernel."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mplab.base.paths import RMNET, WLAN

Kind = Literal["none", "upstream", "out-of-tree"]


@dataclass(frozen=True)
class KernelMptcp:
    """Multipath TCP implementation and settings of a kernel.

    Attributes:
        kind: ``none``, ``upstream`` (Linux 5.6 and later), or ``out-of-tree``: the patches of multipath-tcp.org (0.8x,
            0.9x).
        version: version of the patches, e.g. ``0.95``; "": unknown, or not out-of-tree.
        enabled: True if the sysctl that enables MPTCP is not 0.
        path_manager, scheduler: current settings of an out-of-tree kernel (``fullmesh``, ``default``); else "".
        endpoints: True if the phone's ``ip`` supports ``ip mptcp``.
        multipath: True if the phone's ``ip`` supports ``ip link set dev X multipath on|off|backup``.
        sysctls: ``net.mptcp.*`` → value.
        congestion_controls: available TCP congestion controls.
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
    """Facts that decide whether a transport is possible on a phone.

    Attributes:
        rooted: True if mplab runs commands as root on the phone.
        kernel: MPTCP implementation of the phone's kernel; None: unknown until the phone is connected.
        agent: True if the agent (`mpflex`) can run on the phone.
        interfaces: interfaces of the phone: ``wlan0``, ``rmnet0``.
    """

    rooted: bool = True
    kernel: KernelMptcp | None = None
    agent: bool = True
    interfaces: Collection[str] = (WLAN, RMNET)
