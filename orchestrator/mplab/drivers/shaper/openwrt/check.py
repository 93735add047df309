"""Check a router with OpenWrt for `mplab doctor`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplab.base.findings import Finding, Level
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.settings import RadioFile, RouterFile
from mplab.drivers.shaper.tc.capabilities import Capabilities, look
from mplab.drivers.shaper.tc.check import check_shaping
from mplab.drivers.shaper.tc.offloads import SHOW, parse_offloads
from mplab.drivers.shaper.tc.shell import quote
from mplab.userfiles.machines import ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.tc.ssh import SshConnection


def check_router(ssh: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str) -> Iterator[Finding]:
    """Yield findings about a router over a connected `ssh`. Raises MplabError when the router no longer answers."""
    what, settings, interfaces = machine.label, machine.settings, machine.interfaces
    yield Finding(what, "ok", f"{ssh.where} answers, its host key is the known one")
    yield from _guard(ssh, machine, lab_file)
    found = look(ssh, interfaces, openwrt=True)
    yield from check_shaping(found, what)
    yield from _offload(found, what, settings)
    for warning in parse_offloads(ssh.script(SHOW).stdout, interfaces).warnings(openwrt=True):
        yield Finding(f"{what}: GRO", "warning", warning, "see the message")
    if settings.radio is not None:
        yield from _radio(ssh, what, settings.radio)
    yield from _phones(ssh, machine)


def _guard(ssh: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str) -> Iterator[Finding]:
    state, what = guard.show(ssh), machine.label
    remedy = f"mplab router install {lab_file} --router {machine.name}"
    if not state.installed:
        found = "another version is installed" if state.files else "not installed"
        yield Finding(f"{what}: dead-man's switch", "missing", found, remedy)
    elif not state.running or not state.enabled:
        yield Finding(f"{what}: dead-man's switch", "missing", "installed, but not running or not enabled", remedy)
    else:
        yield Finding(f"{what}: dead-man's switch", "ok", "installed, runs, and is started at boot")
    if state.owner:
        found = f"held by {state.owner}, last heard {state.silent_s} s ago"
        remedy = f"wait, or: mplab router restore {lab_file} --router {machine.name}"
        yield Finding(f"{what}: in use", "warning", found, remedy)


def _offload(found: Capabilities, what: str, settings: RouterFile) -> Iterator[Finding]:
    if not found.offloads:
        yield Finding(f"{what}: flow offload", "ok", "off: every packet passes the queues")
        return
    options = ", ".join(found.offloads)
    if settings.flow_offload == "switch-off":
        yield Finding(f"{what}: flow offload", "warning", f"on ({options}); switched off while mplab shapes")
    else:
        remedy = "switch it off there, or 'flow_offload: switch-off' in the lab file"
        yield Finding(f"{what}: flow offload", "missing", f"on ({options}): packets pass the queues by", remedy)


def _radio(ssh: "SshConnection", what: str, radio: RadioFile) -> Iterator[Finding]:
    for section in (radio.device, radio.network):
        there = ssh.run(f"uci -q get {quote(f'wireless.{section}')}", check=False).exit_code == 0
        level: Level = "ok" if there else "missing"
        found = f"wireless.{section} is {'there' if there else 'not in its configuration'}"
        yield Finding(f"{what}: radio", level, found, "" if there else "see 'uci show wireless' there")


def _phones(ssh: "SshConnection", machine: ShapingMachine[RouterFile]) -> Iterator[Finding]:
    """Check whether the router knows the addresses of the phones; a phone that is asleep may be unknown."""
    neighbours = ssh.script("ip neigh", check=False).stdout.lower().split()
    for path in machine.paths:
        if path.address:
            known = path.address.lower() in neighbours
            found = f"{path.address} is {'known' if known else 'not known'} to {machine.label}"
            remedy = "" if known else "is the phone connected, and is this its address there (random MAC addresses?)"
            yield Finding(f"phone {path.phone}: {path.interface}", "ok" if known else "warning", found, remedy)
