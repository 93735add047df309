"""Probe the abilities of a phone for ``mplab phone probe``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.programs import CURL, MPFLEX, MPTRACE, Program
from mplab.drivers.phone.adb.apps import Apps
from mplab.drivers.phone.adb.kernel import read_kernel
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.adb.programs import BROUGHT
from mplab.drivers.phone.adb.readiness import Readiness, default_thresholds, measure_readiness
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.phone.protocol import PhoneIdentity
from mplab.drivers.phone.settings import ReadyFile

_PCAPDROID = "com.emanuelef.remote_capture"
_TOOLS = ("ip", "ss", "iptables", "ip6tables", "tcpdump", "tc")
WITHOUT_ROOT = (
    "transparent redirect of the apps' TCP: only apps that can use a proxy go through the agent",
    "default route and policy routing",
    "kernel parameters: congestion control, Multipath TCP",
    "IPv6: apps may use it in addition to the transport",
    "QUIC (443/udp): apps may use it in addition to the transport",
    "captures on the phone's interfaces",
)
"""Conditions that mplab cannot control on a phone without root."""


@dataclass(frozen=True)
class Probe:
    """Result of a probe.

    Attributes:
        identity: model, Android version, kernel.
        serial: serial as adb prints it.
        root: method of root access, or ``none``.
        abis: ABIs that the phone supports, the preferred one first.
        devices: interface (``wlan0``, ``rmnet0``) → its name on the phone.
        addresses: interface (``wlan0``, ``rmnet0``) → IPv4 address.
        kernel: Multipath TCP implementation and settings of the kernel.
        programs: program of mplab or of the phone → path, or the reason why it is missing.
        captures: points where packets can be captured: ``proxy``, ``phone``, ``PCAPdroid``.
        uncontrolled: conditions that mplab cannot control on this phone; see `WITHOUT_ROOT`.
        readiness: result of the readiness check.
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
    uncontrolled: tuple[str, ...]
    readiness: Readiness

    @property
    def facts(self) -> PhoneFacts:
        """Facts that decide which transports are possible on the phone."""
        agent = self.programs[MPFLEX.name].startswith("/")
        return PhoneFacts(self.root != "none", self.kernel, agent=agent, interfaces=tuple(self.devices))

    def to_json(self) -> dict[str, object]:
        """Return all fields as a dictionary, for ``--json`` and the manifest."""
        return asdict(self)


def probe_phone(phone: AdbPhone, thresholds: ReadyFile | None = None, apps: Mapping[str, str] | None = None) -> Probe:
    """Return the abilities of a phone. The only change to the phone is that mplab's programs are copied to it.

    Raises:
        DeviceError: the phone is lost.
    """
    kernel = read_kernel(phone)
    programs = _programs(phone)
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
        uncontrolled=() if phone.rooted else WITHOUT_ROOT,
        readiness=measure_readiness(phone, thresholds or default_thresholds(), apps),
    )


def _programs(phone: AdbPhone) -> dict[str, str]:
    paths = {}
    for program in (MPFLEX, MPTRACE, CURL):
        paths[program.name] = _where(phone, program)
    output = phone.script("; ".join(f"command -v {name} || echo -" for name in _TOOLS), check=False).stdout
    for name, where in zip(_TOOLS, output.splitlines(), strict=False):
        paths[name] = where if where.startswith("/") else "not there"
    return paths


def _where(phone: AdbPhone, program: Program) -> str:
    try:
        path = phone.program(program)
        if program in BROUGHT:  # only a call shows whether the program runs on this kernel
            phone.shell([path, *program.version_argv])
    except (LabNotReadyError, DeviceError) as error:
        return f"not usable: {error}"
    return path
