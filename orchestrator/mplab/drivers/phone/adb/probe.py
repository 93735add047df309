"""What a phone can do, and which transports that leaves: ``mplab phone probe``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.programs import CURL, MPFLEX, MPTRACE, Program
from mplab.drivers.phone.adb.apps import Apps
from mplab.drivers.phone.adb.kernel import KernelMptcp, read_kernel
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.adb.programs import BROUGHT
from mplab.drivers.phone.adb.readiness import Readiness, default_thresholds, look
from mplab.drivers.phone.protocol import PhoneIdentity
from mplab.drivers.phone.settings import ReadyFile
from mplab.drivers.transport.mptcp import NO_SECOND_SUBFLOW

_PCAPDROID = "com.emanuelef.remote_capture"
_TOOLS = ("ip", "ss", "iptables", "ip6tables", "tcpdump", "tc")
WITHOUT_ROOT = (
    "transparent redirect of the apps' TCP: only apps that can use a proxy go through the agent",
    "default route and policy routing",
    "kernel parameters: congestion control, Multipath TCP",
    "IPv6: apps may use it beside the transport",
    "QUIC (443/udp): apps may use it beside the transport",
    "captures on the phone's interfaces",
)
"""What cannot be controlled on a phone without root."""


@dataclass(frozen=True)
class TransportChance:
    """Whether a transport is possible on a phone.

    Attributes:
        possible: it is.
        how: ``redirect`` of all TCP, or ``socks``: apps that take a proxy; "" when it is not possible.
        note: why not, or what goes with it.
    """

    possible: bool
    how: str
    note: str = ""


@dataclass(frozen=True)
class Probe:
    """What was found.

    Attributes:
        identity: model, Android, kernel.
        serial: as adb has it.
        root: how it gives root, ``none``.
        abis: what it runs.
        devices: ``wlan0``, ``rmnet0`` → what it calls them.
        addresses: ``wlan0``, ``rmnet0`` → address.
        kernel: its Multipath TCP.
        programs: of mplab and the phone's → where, or why not.
        captures: where packets can be captured.
        transports: by name.
        uncontrolled: what cannot be controlled on it.
        readiness: as the gate sees it.
    """

    identity: PhoneIdentity
    serial: str
    root: str
    abis: tuple[str, ...]
    devices: Mapping[str, str]
    addresses: Mapping[str, str]
    kernel: KernelMptcp
    programs: Mapping[str, str]
    captures: tuple[str, ...]
    transports: Mapping[str, TransportChance]
    uncontrolled: tuple[str, ...]
    readiness: Readiness

    def to_json(self) -> dict[str, Any]:
        """For ``--json`` and the manifest."""
        return asdict(self)


def probe_phone(phone: AdbPhone, thresholds: ReadyFile | None = None, apps: Mapping[str, str] | None = None) -> Probe:
    """Look at a phone; nothing on it is changed but that mplab's programs are brought there. Raises DeviceError."""
    kernel = read_kernel(phone)
    programs = _programs(phone)
    agent = programs[MPFLEX.name].startswith("/")
    pcapdroid = bool(Apps(phone).version(_PCAPDROID))
    captures = ("proxy", *(("phone",) if phone.rooted else ()), *(("PCAPdroid",) if pcapdroid else ()))
    return Probe(
        identity=phone.identity(),
        serial=phone.serial,
        root=phone.root.value,
        abis=phone.programs.abis,
        devices=phone.devices,
        addresses=dict(phone.interfaces),
        kernel=kernel,
        programs=programs,
        captures=captures,
        transports=chances(kernel, rooted=phone.rooted, agent=agent, roles=tuple(phone.devices)),
        uncontrolled=() if phone.rooted else WITHOUT_ROOT,
        readiness=look(phone, thresholds or default_thresholds(), apps),
    )


def chances(kernel: KernelMptcp, *, rooted: bool, agent: bool, roles: tuple[str, ...]) -> dict[str, TransportChance]:
    """Which transports a phone leaves.

    Args:
        kernel: its Multipath TCP.
        rooted: it is.
        agent: mplab's agent runs on it.
        roles: which interfaces it has: ``wlan0``, ``rmnet0``.
    """
    how = "redirect" if rooted else "socks"
    both = {"wlan0", "rmnet0"} <= set(roles)

    def chance(problem: str, note: str = "") -> TransportChance:
        return TransportChance(not problem, "" if problem else how, problem or note)

    no_agent = "" if agent else "mplab's agent does not run on it"
    no_pair = "" if both else "two interfaces are needed, and there is one"
    bound = "" if rooted else "the agent binds to the interface, which without root needs Linux 5.7 or later"
    return {
        "sptcp": chance(no_agent),
        "sptcp-wifi": chance(no_agent or ("" if "wlan0" in roles else "no WiFi interface"), bound),
        "sptcp-lte": chance(no_agent or ("" if "rmnet0" in roles else "no cellular interface"), bound),
        "mptcp": chance(no_agent or no_pair or _mptcp_problem(kernel, rooted=rooted), _mptcp_note(kernel)),
        "mpflex": chance(no_agent or no_pair, bound),
    }


def _mptcp_problem(kernel: KernelMptcp, *, rooted: bool) -> str:
    if kernel.kind == "none":
        return "its kernel has no Multipath TCP"
    if kernel.kind == "upstream":
        if not rooted:
            return NO_SECOND_SUBFLOW
        return "" if kernel.endpoints else "its ip does not know 'ip mptcp': no endpoint can be added"
    if rooted:
        return ""
    if kernel.enabled and kernel.path_manager in {"fullmesh", "ndiffports"}:
        return ""
    state = f"enabled {int(kernel.enabled)}, path manager {kernel.path_manager or 'unknown'}"
    return f"its kernel is set so that there is no second subflow ({state}), and only root can change that"


def missing_mptcp(kernel: KernelMptcp) -> str:
    """Why runs cannot use the Multipath TCP of a rooted phone, or ""."""
    if kernel.kind == "out-of-tree":
        return f"its kernel has that of the patches {kernel.version}".rstrip() + ", which proxies would not understand"
    return _mptcp_problem(kernel, rooted=True)


def _mptcp_note(kernel: KernelMptcp) -> str:
    if kernel.kind != "out-of-tree":
        return ""
    backup = "" if kernel.multipath else "; its ip does not know 'multipath': no backup paths"
    return (
        f"out-of-tree {kernel.version or 'of unknown version'}, path manager {kernel.path_manager}, "
        f"scheduler {kernel.scheduler}{backup}"
    )


def _programs(phone: AdbPhone) -> dict[str, str]:
    found = {}
    for program in (MPFLEX, MPTRACE, CURL):
        found[program.name] = _where(phone, program)
    said = phone.script("; ".join(f"command -v {name} || echo -" for name in _TOOLS), check=False).stdout
    for name, where in zip(_TOOLS, said.splitlines(), strict=False):
        found[name] = where if where.startswith("/") else "not there"
    return found


def _where(phone: AdbPhone, program: Program) -> str:
    try:
        path = phone.program(program)
        if program in BROUGHT:  # whether it runs on this kernel is seen by running it
            phone.shell([path, *program.version_argv])
    except (LabNotReadyError, DeviceError) as error:
        return f"not usable: {error}"
    return path
