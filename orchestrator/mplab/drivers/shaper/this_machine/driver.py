"""Driver ``this-machine``: a router that is this host itself; it shapes by the host's traffic control, without SSH."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mplab.base.findings import Finding
from mplab.drivers.shaper.tc.linux_host import LinuxHostDriver, LinuxHostFile, local_shell
from mplab.drivers.shaper.tc.shell import CommandShell, Shell
from mplab.userfiles.labs.machine_fields import DeadMan, InterfaceName
from mplab.userfiles.labs.machines import Section, ShapingMachine


class ThisMachineFile(LinuxHostFile):
    """Entry of a router in a lab file: the access point (hostapd or a bridge) is the host that runs mplab."""

    driver: Literal["this-machine"] = Field(description="The host that runs mplab is the access point.")
    interface: InterfaceName = Field(
        description="Its interface towards the phones: the radio, or a port of the bridge."
    )
    sudo: bool = Field(False, description="mplab's user becomes root by 'sudo -n'.")
    dead_man: DeadMan = Field(
        15.0, description="Time without heartbeat after which a background shell removes all shaping."
    )


class ThisMachineDriver(LinuxHostDriver[ThisMachineFile, CommandShell]):
    """`MachineDriver` for the host that runs mplab; nothing is installed on it."""

    name = "this-machine"
    title = "this machine, which is the access point itself"
    section: Section = "routers"
    settings = ThisMachineFile

    def shell(self, label: str, settings: ThisMachineFile) -> CommandShell:
        """Return an unconnected root shell on this host; see `TcDriver`."""
        return local_shell(label, settings)

    def uses(self, machine: ShapingMachine[ThisMachineFile]) -> str:
        """Return the shaped interface of this host as a phrase; see `MachineDriver`."""
        return f"routers.{machine.name} shapes {machine.settings.interface} of this host"

    def check_connected(
        self, shell: CommandShell, machine: ShapingMachine[ThisMachineFile], lab_file: str
    ) -> Iterator[Finding]:
        """Yield findings about this host's shaping abilities and its role as access point; see `TcDriver`."""
        yield from super().check_connected(shell, machine, lab_file)
        yield from check_access_point(shell, machine)


_CHECK_SCRIPT = """
for interface; do
	folder=/sys/class/net/$interface
	[ -e "$folder" ] || continue
	[ ! -e "$folder/bridge" ] || echo "bridge $interface"
	[ ! -e "$folder/brport" ] || echo "port $interface"
	[ ! -e "$folder/phy80211" ] || echo "radio $interface"
done
echo "forward $(cat /proc/sys/net/ipv4/ip_forward)"
ip neigh | while read -r address rest; do echo "neighbour $address $rest"; done
"""


def check_access_point(shell: Shell, machine: ShapingMachine[ThisMachineFile]) -> Iterator[Finding]:
    """Check whether this host forwards the phones' packets; yield findings. Raises MplabError when a command failed."""
    lines = [line.partition(" ") for line in shell.script(_CHECK_SCRIPT, *machine.interfaces).stdout.splitlines()]
    values = {kind: [value for word, _, value in lines if word == kind] for kind in {word for word, _, _ in lines}}
    label = machine.label
    for interface in values.get("bridge", ()):
        remedy = f"name the port with the phones as 'interface'; see 'ip link show master {interface}'"
        yield Finding(f"{label}: {interface}", "warning", "a bridge: packets between its ports are not shaped", remedy)
    bridged, routed = set(values.get("port", ())), values.get("forward") == ["1"]
    for interface in machine.interfaces:
        how = "a port of a bridge" if interface in bridged else "routed" if routed else ""
        kind = "radio" if interface in values.get("radio", ()) else "wire"
        if how:
            yield Finding(f"{label}: access point", "ok", f"{interface} is a {kind}, {how}")
        else:
            remedy = "sysctl -w net.ipv4.ip_forward=1, or make it a port of a bridge"
            problem = f"{interface} is no port of a bridge, and this machine forwards no packets"
            yield Finding(f"{label}: access point", "missing", problem, remedy)
    neighbours = " ".join(values.get("neighbour", ())).lower().split()
    for path in machine.paths:
        if path.address:
            known = path.address in neighbours
            remedy = "" if known else "is the phone connected, and is this its address here (random MAC addresses?)"
            result = f"{path.address} is {'known' if known else 'not known'} to {label}"
            yield Finding(f"phone {path.phone}: {path.interface}", "ok" if known else "warning", result, remedy)


DRIVER = ThisMachineDriver()
