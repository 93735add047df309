"""Driver ``openwrt``: a router with OpenWrt, over SSH."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.deferred import deferred
from mplab.base.findings import Finding, Level
from mplab.drivers.shaper.driver import MachineState
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.capabilities import Capabilities, check_shaping, find_capabilities
from mplab.drivers.shaper.tc.offloads import SHOW, parse_offloads
from mplab.drivers.shaper.tc.shell import connected, quote
from mplab.format.names import pattern_schema
from mplab.userfiles.labs.machine_fields import DeadMan, Host, InterfaceName, SshFile, named
from mplab.userfiles.labs.machines import Section, ShapingMachine, known_driver

if TYPE_CHECKING:
    from mplab.drivers.shaper.openwrt.router import Router
    from mplab.drivers.shaper.owner import Owner
    from mplab.drivers.shaper.tc.ssh import SshConnection

_UCI_SECTION = re.compile(r"[A-Za-z0-9_]{1,64}")
UciSection = Annotated[str, named(_UCI_SECTION, "section", "radio0"), pattern_schema(_UCI_SECTION)]


class RadioFile(BaseModel):
    """WiFi settings of a router while mplab holds it; the router keeps its own setting for each key that is not set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: UciSection = Field("radio0", description="The radio: a section of /etc/config/wireless.")
    network: UciSection = Field("default_radio0", description="Its network: a section of /etc/config/wireless.")
    enabled: bool | None = Field(None, description="Radio on or off.")
    channel: int | None = Field(None, ge=1, le=233, description="Channel.")
    tx_power_dbm: int | None = Field(None, ge=0, le=40, description="Transmit power, dBm.")
    ssid: str | None = Field(None, min_length=1, max_length=32, description="Name of the network.")


class RouterFile(SshFile):
    """Entry of a router with OpenWrt in a lab file."""

    driver: Annotated[Literal["openwrt"], known_driver("routers")] = Field("openwrt", description="OpenWrt over SSH.")
    host: Host = Field(description="Name or address.")
    interface: InterfaceName = Field(description="The router's interface towards the phones.")
    flow_offload: Literal["refuse", "switch-off"] = Field(
        "refuse", description="If its flow offload bypasses the queues: refuse the router, or switch flow offload off."
    )
    dead_man: DeadMan = Field(15.0, description="Time without heartbeat after which it removes all shaping.")
    radio: RadioFile | None = Field(None, description="Its WiFi while mplab holds it.")

    @property
    def shaped_interface(self) -> str:
        """Interface of the router that is shaped if a phone's path names no interface; see `MachineFile`."""
        return self.interface


class OpenWrt(TcDriver[RouterFile, "SshConnection"]):
    """`MachineDriver` for routers with OpenWrt."""

    name = "openwrt"
    title = "a router with OpenWrt, over SSH"
    section: Section = "routers"
    settings = RouterFile
    state_directory = guard.STATE

    def shell(self, label: str, settings: RouterFile) -> "SshConnection":
        """Return an unconnected root shell on the router, over SSH; see `TcDriver`."""
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.tc.ssh import SshConnection
        return SshConnection(label, settings)

    def hold(self, machine: ShapingMachine[RouterFile], owner: "Owner") -> "Router":
        """Return a context that holds the router: no other process can shape it; see `MachineDriver`."""
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.openwrt.router import Router
        return Router(machine.name, machine.settings, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: ShapingMachine[RouterFile]) -> str:
        """Return the SSH login as a phrase; see `MachineDriver`."""
        return machine.settings.login_text()

    def install(self, machine: ShapingMachine[RouterFile]) -> str:
        """Install the dead-man's switch on the router; return a sentence with the result."""
        sentence = "the dead-man's switch is installed and runs"
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return sentence if guard.install(ssh) else f"{sentence} already"

    def remove(self, machine: ShapingMachine[RouterFile]) -> str:
        """Remove the dead-man's switch from the router; return a sentence with the result."""
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return "the dead-man's switch is removed" if guard.remove(ssh) else "nothing of mplab is installed"

    def show(self, machine: ShapingMachine[RouterFile]) -> MachineState:
        """Return the state of the dead-man's switch on the router, and the router's holder."""
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return guard.show(ssh)

    def key_problem(self, settings: RouterFile) -> str:
        """Return why the SSH key in the settings cannot be used; "" if it can be used or the settings name no key."""
        return settings.key_problem()

    def check_connected(
        self, shell: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str
    ) -> Iterator[Finding]:
        """Yield findings about the router over its connected root shell; see `TcDriver`."""
        return check_router(shell, machine, lab_file)


def check_router(ssh: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str) -> Iterator[Finding]:
    """Check a router over the connection `ssh`; yield findings. Raises MplabError when the router no longer answers."""
    label, settings, interfaces = machine.label, machine.settings, machine.interfaces
    yield Finding(label, "ok", f"{ssh.where} answers, its host key is the known one")
    yield from _guard(ssh, machine, lab_file)
    capabilities = find_capabilities(ssh, interfaces, openwrt=True)
    yield from check_shaping(capabilities, label)
    yield from _offload(capabilities, label, settings)
    for warning in parse_offloads(ssh.script(SHOW).stdout, interfaces).warnings(openwrt=True):
        yield Finding(f"{label}: GRO", "warning", warning, "see the message")
    if settings.radio is not None:
        yield from _radio(ssh, label, settings.radio)
    yield from _phones(ssh, machine)


def _guard(ssh: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str) -> Iterator[Finding]:
    state, label = guard.show(ssh), machine.label
    remedy = f"mplab router install {lab_file} --router {machine.name}"
    if not state.installed:
        result = "another version is installed" if state.files else "not installed"
        yield Finding(f"{label}: dead-man's switch", "missing", result, remedy)
    elif not state.running or not state.enabled:
        yield Finding(f"{label}: dead-man's switch", "missing", "installed, but not running or not enabled", remedy)
    else:
        yield Finding(f"{label}: dead-man's switch", "ok", "installed, runs, and is started at boot")
    if state.owner:
        result = f"held by {state.owner}, last heard {state.silent_s} s ago"
        remedy = f"wait, or: mplab router restore {lab_file} --router {machine.name}"
        yield Finding(f"{label}: in use", "warning", result, remedy)


def _offload(capabilities: Capabilities, label: str, settings: RouterFile) -> Iterator[Finding]:
    if not capabilities.offloads:
        yield Finding(f"{label}: flow offload", "ok", "off: every packet passes the queues")
        return
    options = ", ".join(capabilities.offloads)
    if settings.flow_offload == "switch-off":
        yield Finding(f"{label}: flow offload", "warning", f"on ({options}); switched off while mplab shapes")
    else:
        remedy = "switch it off on the router, or set 'flow_offload: switch-off' in the lab file"
        yield Finding(f"{label}: flow offload", "missing", f"on ({options}): packets bypass the queues", remedy)


def _radio(ssh: "SshConnection", label: str, radio: RadioFile) -> Iterator[Finding]:
    for section in (radio.device, radio.network):
        exists = ssh.run(f"uci -q get {quote(f'wireless.{section}')}", check=False).exit_code == 0
        level: Level = "ok" if exists else "missing"
        result = f"wireless.{section} is {'there' if exists else 'not in its configuration'}"
        yield Finding(f"{label}: radio", level, result, "" if exists else "see 'uci show wireless' there")


def _phones(ssh: "SshConnection", machine: ShapingMachine[RouterFile]) -> Iterator[Finding]:
    """Yield one finding per path of a phone: whether the router's neighbour table has the phone's address.

    The table may lack a phone that is asleep.
    """
    neighbours = ssh.script("ip neigh", check=False).stdout.lower().split()
    for path in machine.paths:
        if path.address:
            known = path.address.lower() in neighbours
            result = f"{path.address} is {'known' if known else 'not known'} to {machine.label}"
            remedy = "" if known else "is the phone connected, and is this its address there (random MAC addresses?)"
            yield Finding(f"phone {path.phone}: {path.interface}", "ok" if known else "warning", result, remedy)


DRIVER = OpenWrt()
