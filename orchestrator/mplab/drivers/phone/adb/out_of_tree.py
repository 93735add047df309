"""Configure out-of-tree Multipath TCP (multipath-tcp.org, 0.8x and 0.9x) by sysctls and interface flags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.kernel import read_kernel
from mplab.drivers.phone.adb.phone import AdbPhone

Use = Literal["on", "off", "backup"]

_FOLDER = "/proc/sys/net/mptcp"
_NDIFFPORTS = "/sys/module/mptcp_ndiffports/parameters/num_subflows"
_IFF_NOMULTIPATH, _IFF_MPBACKUP = 0x80000, 0x100000
"""Interface flags in ``if.h`` of out-of-tree kernels."""


@dataclass(frozen=True)
class OutOfTreeSettings:
    """Settings of an out-of-tree kernel, on which all TCP connections become MPTCP connections.

    Attributes:
        path_manager: ``fullmesh``, ``ndiffports``, ``default`` (none), ``binder``.
        scheduler: ``default`` (lowest RTT first), ``roundrobin``, ``redundant``, ``blest``, ``ecf``.
        subflows: number of subflows per connection for ``ndiffports``.
        uses: ``wlan0``, ``rmnet0`` → use of the interface by MPTCP; other interfaces stay unchanged.
    """

    path_manager: str = "fullmesh"
    scheduler: str = "default"
    subflows: int = 2
    uses: Mapping[str, Use] = field(default_factory=dict)


def set_out_of_tree(phone: AdbPhone, settings: OutOfTreeSettings) -> None:
    """Configure the kernel until the phone is released.

    Raises:
        LabNotReadyError: the kernel has no out-of-tree MPTCP, the phone is not rooted, or its ``ip`` is too old.
        DeviceError: a setting was not accepted.
    """
    kernel = read_kernel(phone)
    if kernel.kind != "out-of-tree":
        raise LabNotReadyError(f"{phone.label}: its kernel has no out-of-tree Multipath TCP ({kernel.kind})")
    if not phone.rooted:
        raise LabNotReadyError(f"{phone.label}: Multipath TCP can be set on a rooted phone alone")
    if settings.uses and not kernel.multipath:
        raise LabNotReadyError(
            f"{phone.label}: its ip does not know 'ip link set dev … multipath': bring one that does"
        )
    wanted = {"mptcp_enabled": "1", "mptcp_path_manager": settings.path_manager}
    if "mptcp_scheduler" in kernel.sysctls or settings.scheduler != "default":
        wanted["mptcp_scheduler"] = settings.scheduler
    for name, value in wanted.items():
        if name not in kernel.sysctls:
            raise DeviceError(phone.label, f"its kernel {kernel.version} has no net.mptcp.{name}")
        if kernel.sysctls[name] != value:
            _write(phone, f"{_FOLDER}/{name}", kernel.sysctls[name], value)
    if settings.path_manager == "ndiffports":
        before = phone.script(f"cat {_NDIFFPORTS}", check=False).stdout.strip() or "2"
        _write(phone, _NDIFFPORTS, before, str(settings.subflows))
    for role, use in settings.uses.items():
        _set_use(phone, role, use)
    found = read_kernel(phone).sysctls
    if wrong := [
        f"{name} is {found.get(name)}, not {value}" for name, value in wanted.items() if found.get(name) != value
    ]:
        raise DeviceError(phone.label, f"its kernel did not take it: {'; '.join(wrong)}")


def use_of(flags: int) -> Use:
    """Return the use of an interface by MPTCP from its flags."""
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
