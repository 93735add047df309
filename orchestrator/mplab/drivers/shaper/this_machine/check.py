"""Check this machine as an access point for `mplab doctor`."""

from collections.abc import Iterator

from mplab.base.findings import Finding
from mplab.drivers.shaper.tc.shell import Shell
from mplab.drivers.shaper.this_machine.settings import ThisMachineFile
from mplab.userfiles.machines import ShapingMachine

_SCRIPT = """
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
    """Yield findings: whether the packets of phones pass this machine. Raises MplabError when a command failed."""
    lines = [line.partition(" ") for line in shell.script(_SCRIPT, *machine.interfaces).stdout.splitlines()]
    found = {kind: [rest for word, _, rest in lines if word == kind] for kind in {word for word, _, _ in lines}}
    what = machine.label
    for interface in found.get("bridge", ()):
        remedy = f"name the port with the phones as 'interface'; see 'ip link show master {interface}'"
        yield Finding(f"{what}: {interface}", "warning", "a bridge: packets between its ports are not shaped", remedy)
    bridged, routed = set(found.get("port", ())), found.get("forward") == ["1"]
    for interface in machine.interfaces:
        how = "a port of a bridge" if interface in bridged else "routed" if routed else ""
        kind = "radio" if interface in found.get("radio", ()) else "wire"
        if how:
            yield Finding(f"{what}: access point", "ok", f"{interface} is a {kind}, {how}")
        else:
            remedy = "sysctl -w net.ipv4.ip_forward=1, or make it a port of a bridge"
            problem = f"{interface} is no port of a bridge, and this machine forwards no packets"
            yield Finding(f"{what}: access point", "missing", problem, remedy)
    neighbours = " ".join(found.get("neighbour", ())).lower().split()
    for path in machine.paths:
        if path.address:
            known = path.address in neighbours
            remedy = "" if known else "is the phone connected, and is this its address here (random MAC addresses?)"
            said = f"{path.address} is {'known' if known else 'not known'} to {what}"
            yield Finding(f"phone {path.phone}: {path.interface}", "ok" if known else "warning", said, remedy)
