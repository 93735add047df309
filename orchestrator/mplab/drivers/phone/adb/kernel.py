"""Detect, configure and restore the Multipath TCP settings of a phone's kernel.

The kernel has no Multipath TCP, the upstream implementation (Linux 5.6 and later), or out-of-tree patches
(multipath-tcp.org, 0.8x and 0.9x).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.link import asking, split_answers
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.buffers import RECEIVE_BUFFERS, read_receive_buffers
from mplab.drivers.phone.kernel import KernelMptcp

_NO_DEVICE = "mplab-none"
"""Name of a device that does not exist, for ``ip link set dev X multipath on``.

An ``ip`` that knows ``multipath`` complains about the device; another one complains about the word ``multipath``."""
_ASKED = {
    "sysctls": "cd /proc/sys/net/mptcp && grep . *",
    "release": "uname -r",
    "log": "dmesg | grep -i 'MPTCP: Stable release' | tail -n 1",
    "endpoints": "ip mptcp endpoint show 2>&1 && echo mplab-known",
    "multipath": f"ip link set dev {_NO_DEVICE} multipath on 2>&1",
    "congestion": "cat /proc/sys/net/ipv4/tcp_available_congestion_control",
}
_VERSION = re.compile(r"mptcp[-_. v]*(0\.\d+)|Stable release v(0\.\d+)", re.IGNORECASE)


def read_kernel(phone: AdbPhone) -> KernelMptcp:
    """Return the Multipath TCP implementation and settings of the phone's kernel. Raises DeviceError."""
    return parse_kernel(split_answers(phone.script(asking(_ASKED), check=False).stdout))


def parse_kernel(answers: Mapping[str, str]) -> KernelMptcp:
    """Parse the MPTCP settings of a phone from `answers`: name of a command in `_ASKED` → output of the command."""
    pairs = (line.partition(":") for line in answers.get("sysctls", "").splitlines())
    sysctls = {name: value.strip() for name, colon, value in pairs if colon}
    congestion = tuple(answers.get("congestion", "").split())
    if "mptcp_enabled" in sysctls:
        match = _VERSION.search(answers.get("log", "")) or _VERSION.search(answers.get("release", ""))
        return KernelMptcp(
            kind="out-of-tree",
            version=(match[1] or match[2]) if match else "",
            enabled=sysctls["mptcp_enabled"] != "0",
            path_manager=sysctls.get("mptcp_path_manager", ""),
            scheduler=sysctls.get("mptcp_scheduler", "default"),
            multipath=_knows_multipath(answers.get("multipath", "")),
            sysctls=sysctls,
            congestion_controls=congestion,
        )
    if "enabled" in sysctls:
        return KernelMptcp(
            kind="upstream",
            enabled=sysctls["enabled"] != "0",
            endpoints=answers.get("endpoints", "").split()[-1:] == ["mplab-known"],
            sysctls=sysctls,
            congestion_controls=congestion,
        )
    return KernelMptcp(congestion_controls=congestion)


def _knows_multipath(output: str) -> bool:
    return "garbage" not in output and "not found" not in output


_KNOBS = "/proc/sys/net/mptcp"
_KEPT = ("enabled", "blackhole_timeout")
_LOOK = f"cd {_KNOBS} && grep . {' '.join(_KEPT)} 2>/dev/null; ip mptcp limits show && ip mptcp endpoint show"


def keep_mptcp(phone: AdbPhone) -> None:
    """Register an undo that restores MPTCP endpoints, limits and sysctls when the phone is released.

    If this process is killed, a later process runs the undo from the undo journal. Does nothing when the kernel or the
    ``ip`` of the phone does not support MPTCP.

    Raises:
        DeviceError: the phone is lost.
    """
    settings = phone.script(_LOOK, check=False)
    if settings.exit_code == 0:
        phone.register(f"{phone.label}: MPTCP", undo_script(settings.stdout))


def keep_receive_buffers(phone: AdbPhone) -> None:
    """Register an undo that restores the sizes of TCP receive buffers when the phone is released.

    If this process is killed, a later process runs the undo from the undo journal.

    Raises:
        DeviceError: the phone is lost, or its kernel shows no sizes.
    """
    sizes = " ".join(read_receive_buffers(phone))
    phone.register(f"{phone.label}: receive buffers", f"echo {sizes} > /proc/sys/{RECEIVE_BUFFERS.replace('.', '/')}")


def undo_script(shown: str) -> str:
    """Return shell lines that, run as root, restore the MPTCP settings printed in `shown`.

    `shown` has lines such as ``enabled:1``, ``add_addr_accepted 0 subflows 2`` and ``10.0.0.2 id 1 subflow dev wlan0``.
    """
    lines = ["ip mptcp endpoint flush"]
    for line in map(str.strip, shown.splitlines()):
        if limits := re.fullmatch(r"add_addr_accepted (\d+) subflows (\d+)", line):
            lines.append(f"ip mptcp limits set subflow {limits[2]} add_addr_accepted {limits[1]}")
        elif knob := re.fullmatch(rf"({'|'.join(_KEPT)}):(\d+)", line):
            lines.append(f"echo {knob[2]} > {_KNOBS}/{knob[1]}")
        elif re.fullmatch(r"[0-9a-f.:]+ id \d+ [\w ]+", line):
            lines.append(f"ip mptcp endpoint add {line}")
    return "\n".join(lines)


Use = Literal["on", "off", "backup"]

_NDIFFPORTS = "/sys/module/mptcp_ndiffports/parameters/num_subflows"
_IFF_NOMULTIPATH, _IFF_MPBACKUP = 0x80000, 0x100000
"""Interface flags in ``if.h`` of out-of-tree kernels."""


@dataclass(frozen=True)
class OutOfTreeSettings:
    """Settings of an out-of-tree MPTCP kernel, on which every TCP connection becomes an MPTCP connection.

    Attributes:
        path_manager: ``fullmesh``, ``ndiffports``, ``default`` (none), ``binder``.
        scheduler: ``default`` (lowest RTT first), ``roundrobin``, ``redundant``, ``blest``, ``ecf``.
        subflows: number of subflows per connection for ``ndiffports``.
        uses: interface (``wlan0``, ``rmnet0``) → ``on``, ``off`` or ``backup``; interfaces that are not listed stay
            unchanged.
    """

    path_manager: str = "fullmesh"
    scheduler: str = "default"
    subflows: int = 2
    uses: Mapping[str, Use] = field(default_factory=dict)


def set_out_of_tree(phone: AdbPhone, settings: OutOfTreeSettings) -> None:
    """Apply MPTCP settings to the phone's out-of-tree kernel until the phone is released.

    Raises:
        LabNotReadyError: the phone has no out-of-tree MPTCP kernel, no root access, or an ``ip`` that is too old.
        DeviceError: a setting was not accepted.
    """
    kernel = read_kernel(phone)
    if kernel.kind != "out-of-tree":
        raise LabNotReadyError(f"{phone.label}: its kernel has no out-of-tree Multipath TCP ({kernel.kind})")
    if not phone.rooted:
        raise LabNotReadyError(f"{phone.label}: Multipath TCP can be set only on a rooted phone")
    if settings.uses and not kernel.multipath:
        raise LabNotReadyError(
            f"{phone.label}: its ip does not know 'ip link set dev … multipath': install one that does"
        )
    wanted = {"mptcp_enabled": "1", "mptcp_path_manager": settings.path_manager}
    if "mptcp_scheduler" in kernel.sysctls or settings.scheduler != "default":
        wanted["mptcp_scheduler"] = settings.scheduler
    for name, value in wanted.items():
        if name not in kernel.sysctls:
            raise DeviceError(phone.label, f"its kernel {kernel.version} has no net.mptcp.{name}")
        if kernel.sysctls[name] != value:
            _write(phone, f"{_KNOBS}/{name}", kernel.sysctls[name], value)
    if settings.path_manager == "ndiffports":
        before = phone.script(f"cat {_NDIFFPORTS}", check=False).stdout.strip() or "2"
        _write(phone, _NDIFFPORTS, before, str(settings.subflows))
    for role, use in settings.uses.items():
        _set_use(phone, role, use)
    sysctls = read_kernel(phone).sysctls
    if wrong := [
        f"{name} is {sysctls.get(name)}, not {value}" for name, value in wanted.items() if sysctls.get(name) != value
    ]:
        raise DeviceError(phone.label, f"its kernel did not apply a setting: {'; '.join(wrong)}")


def use_of(flags: int) -> Use:
    """Return how MPTCP uses an interface, from the interface's flags: ``on``, ``off`` or ``backup``."""
    return "off" if flags & _IFF_NOMULTIPATH else "backup" if flags & _IFF_MPBACKUP else "on"


def _write(phone: AdbPhone, path: str, before: str, value: str) -> None:
    phone.register(f"{phone.label}: {path.rpartition('/')[2]}", f"echo {before} > {path}")
    phone.script(f"echo {value} > {path}")


def _set_use(phone: AdbPhone, role: str, use: Use) -> None:
    if role not in phone.devices:
        raise DeviceError(phone.label, f"has no {role}; there are: {', '.join(phone.devices) or 'none'}")
    device = phone.devices[role]
    before = use_of(int(phone.script(f"cat /sys/class/net/{device}/flags").stdout.strip(), 16))
    phone.register(f"{phone.label}: multipath of {device}", f"ip link set dev {device} multipath {before}")
    phone.script(f"ip link set dev {device} multipath {use}")
