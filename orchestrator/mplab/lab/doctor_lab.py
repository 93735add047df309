"""Everything that a lab file names, checked one by one, each with what to do when it is not there."""

from collections.abc import Iterator

from mplab.base.errors import MplabError
from mplab.base.findings import Finding, Level
from mplab.base.programs import OF_VIRTUAL_ROUTER
from mplab.drivers.proxy.docker.settings import ProxyFile
from mplab.drivers.shaper.held import full_name, interfaces_of, open_shell, state_directory
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.router import key_file_problem
from mplab.drivers.shaper.tc.capabilities import Capabilities, look
from mplab.drivers.shaper.tc.guard import holder
from mplab.drivers.shaper.tc.offloads import SHOW, parse_offloads
from mplab.drivers.shaper.tc.shell import Shell, quote
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.lab.driver import phone_driver
from mplab.lab.needs import describe_image
from mplab.userfiles.lab import LabFile, PhoneShellFile, RouterFile, ServerFile, SshFile

_OPTIONAL = {
    "codel": "queues with CoDel",
    "fq_codel": "queues with FQ-CoDel",
    "cake": "queues with CAKE",
    "normal": "jitter with a normal distribution",
    "pareto": "jitter with a Pareto distribution",
    "paretonormal": "jitter with a Pareto-normal distribution",
}


def examine_lab(lab: LabFile, lab_file: str) -> Iterator[Finding]:
    """Finding every router, server and phone of a lab, yielding each finding as it is made; changes nothing.

    Args:
        lab: what the file says.
        lab_file: its name, for what to do.
    """
    for name, settings in lab.routers.items():
        if isinstance(settings, RouterFile):
            yield from _router(lab, name, settings, lab_file)
        else:
            yield from _virtual_router(name, lab_file)
    for name, phone in lab.phones.items():
        if phone.driver is not None:
            yield from phone_driver(phone.driver).check(lab, name, lab_file)
    for name, place in lab.places().items():
        if not isinstance(place, RouterFile):
            yield from _linux(lab, name, place, lab_file)
    if lab.proxy is not None:
        yield from _proxy(lab.proxy, lab_file)


def _proxy(settings: ProxyFile, lab_file: str) -> Iterator[Finding]:
    """What `mplab proxy doctor` finds; services that do not run are started by runs."""
    from mplab.drivers.proxy.docker import DockerStack, StackSettings  # noqa: PLC0415 - slow to import
    from mplab.drivers.proxy.docker.doctor import examine  # noqa: PLC0415

    for finding in examine(DockerStack(StackSettings.of(settings))):
        remedy = "" if finding.ok else f"mplab proxy doctor --lab {lab_file}"
        yield Finding(f"proxy: {finding.what}", "ok" if finding.ok else "missing", finding.found, remedy)


def _virtual_router(name: str, lab_file: str) -> Iterator[Finding]:
    """What it is made of; nothing is booted."""
    what = f"router {name}"
    missing = [program for program in OF_VIRTUAL_ROUTER if program.find() is None]
    for program in missing:
        yield Finding(f"{what}: {program.name}", "missing", f"not found ({program.purpose})", program.remedy)
    if missing:
        return
    try:
        found = describe_image()
    except MplabError as error:
        yield Finding(what, "missing", str(error), "see the message")
        return
    made_of = ", ".join(f"{part} {version}" for part, version in found.items())
    yield Finding(what, "ok", f"can be made: {made_of}", f"to boot it: mplab lab up --lab {lab_file}")


def _linux(lab: LabFile, name: str, settings: ServerFile | PhoneShellFile, lab_file: str) -> Iterator[Finding]:
    what = full_name(lab, name)
    if isinstance(settings, SshFile) and (problem := key_file_problem(settings)):
        yield Finding(f"{what}: key", "missing", problem, "see 'key' in the lab file")
        return
    shell = open_shell(what, settings)
    try:
        shell.connect()
        yield Finding(what, "ok", f"{shell.where} answers")
        user = shell.script("id -u").stdout.strip()
        if user != "0":
            yield Finding(f"{what}: root", "missing", f"user {user} is not root", "log in as root, or 'sudo: true'")
            return
        held = holder(shell, state_directory(settings))
        if held.owner:
            yield Finding(f"{what}: in use", "warning", str(held), f"mplab router restore {lab_file} --router {name}")
        yield from shaping_findings(look(shell, interfaces_of(lab, name), openwrt=False), what)
        if shell.script("command -v ethtool", check=False).exit_code != 0:
            yield Finding(
                f"{what}: ethtool",
                "warning" if isinstance(settings, PhoneShellFile) else "missing",
                "not there: packets that the kernel puts together are delayed and lost as one",
                "" if isinstance(settings, PhoneShellFile) else "install the package ethtool",
            )
    except MplabError as error:
        yield Finding(what, "missing", str(error), "see the message")
    finally:
        shell.close()


def _router(lab: LabFile, name: str, settings: RouterFile, lab_file: str) -> Iterator[Finding]:
    what = f"router {name}"
    if problem := key_file_problem(settings):
        yield Finding(f"{what}: key", "missing", problem, "see 'key' in the lab file")
        return
    ssh = SshConnection(what, settings)
    try:
        ssh.connect()
        yield Finding(what, "ok", f"{ssh.where} answers, its host key is the known one")
        yield from _guard(ssh, what, name, lab_file)
        found = look(ssh, interfaces_of(lab, name))
        yield from shaping_findings(found, what)
        yield from _offload(found, what, settings)
        for warning in parse_offloads(ssh.script(SHOW).stdout, interfaces_of(lab, name)).warnings(openwrt=True):
            yield Finding(f"{what}: GRO", "warning", warning, "see the message")
        if settings.radio is not None:
            yield from _radio(ssh, what, settings)
        yield from _phones(ssh, lab, name)
    except MplabError as error:
        yield Finding(what, "missing", str(error), "see the message")
    finally:
        ssh.close()


def _guard(ssh: SshConnection, what: str, name: str, lab_file: str) -> Iterator[Finding]:
    state = guard.show(ssh)
    remedy = f"mplab router install {lab_file} --router {name}"
    if not state.installed:
        found = "another version is installed" if state.files else "not installed"
        yield Finding(f"{what}: dead-man's switch", "missing", found, remedy)
    elif not state.running or not state.enabled:
        yield Finding(f"{what}: dead-man's switch", "missing", "installed, but not running or not enabled", remedy)
    else:
        yield Finding(f"{what}: dead-man's switch", "ok", "installed, runs, and is started at boot")
    if state.owner:
        found = f"held by {state.owner}, last heard {state.silent_s} s ago"
        yield Finding(f"{what}: in use", "warning", found, f"wait, or: mplab router restore {lab_file} --router {name}")


def shaping_findings(found: Capabilities, what: str) -> Iterator[Finding]:
    """Yield what a machine's kernel and tc can shape."""
    problems = list(found.problems())
    for problem in problems:
        yield Finding(f"{what}: shaping", "missing", problem, "see the message")
    for warning in found.warnings():
        yield Finding(f"{what}: shaping", "warning", warning, "its rate and delay come on top of the requested ones")
    if not problems:
        tiny = " (tc-tiny)" if found.tiny else ""
        yield Finding(f"{what}: shaping", "ok", f"htb, netem, ifb; {found.tc_version}{tiny}")
    for name, purpose in _OPTIONAL.items():
        if found.tc and name not in found.can and "netem" in found.can:
            yield Finding(f"{what}: {name}", "warning", f"no {purpose}", found.remedy(name))


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


def _radio(ssh: SshConnection, what: str, settings: RouterFile) -> Iterator[Finding]:
    assert settings.radio is not None  # noqa: S101 - the caller has looked
    for section in (settings.radio.device, settings.radio.network):
        there = ssh.run(f"uci -q get {quote(f'wireless.{section}')}", check=False).exit_code == 0
        level: Level = "ok" if there else "missing"
        found = f"wireless.{section} is {'there' if there else 'not in its configuration'}"
        yield Finding(f"{what}: radio", level, found, "" if there else "see 'uci show wireless' there")


def _phones(ssh: Shell, lab: LabFile, router: str) -> Iterator[Finding]:
    """Whether the router has seen the phones: one that is asleep it may not have."""
    neighbours = ssh.script("ip neigh", check=False).stdout.lower()
    for name, phone in lab.phones.items():
        for interface, place in phone.attachments().items():
            if place.router != router or not place.whose:
                continue
            known = place.whose.lower() in neighbours.split()
            found = f"{place.whose} is {'known' if known else 'not known'} to router {router}"
            remedy = "" if known else "is the phone connected, and is this its address there (random MAC addresses?)"
            yield Finding(f"phone {name}: {interface}", "ok" if known else "warning", found, remedy)
