"""Check this machine, or the devices of a lab file: one finding for each check, with a remedy if it fails."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil

from mplab.base import congestion, fetched, programs
from mplab.base.enter import check_namespaces
from mplab.base.errors import MplabError
from mplab.base.findings import Finding
from mplab.base.packages import install
from mplab.base.plugins import SCENARIOS
from mplab.drivers.proxy import driver_of as proxy_driver_of
from mplab.drivers.proxy.driver import DRIVERS as PROXIES
from mplab.drivers.proxy.driver import own_driver
from mplab.drivers.services import DRIVERS as SERVICES
from mplab.drivers.shaper.driver import DRIVERS as SHAPERS
from mplab.drivers.shaper.driver import driver_of, emulator_driver
from mplab.drivers.transport import DRIVERS
from mplab.lab.catalog import LINKS_DIR, load_scenario, programs_of, scenario_names
from mplab.lab.driver import DRIVERS as PHONES
from mplab.lab.driver import phone_driver
from mplab.userfiles.labs.lab import LabFile

_MIN_FREE_BYTES = 2_000_000_000
_MIN_MEMORY_BYTES = 2_000_000_000
_BUSY_LOAD_PER_CPU = 0.5


def examine(runs_dir: Path) -> Iterator[Finding]:
    """Check everything that a run needs on this machine; yield each finding immediately.

    Args:
        runs_dir: folder of runs; its disk needs free space.
    """
    yield from (_program(program) for program in programs.ALL)
    yield from _optional_programs()
    yield _appium()
    yield _namespaces()
    yield from _transports()
    yield from _others()
    yield _congestion_control("cubic")
    yield from _scenarios()
    yield _links()
    yield _disk(runs_dir)
    yield _memory()
    yield _load()


def _program(program: programs.Program) -> Finding:
    path = program.find()
    if path is None:
        return Finding(program.name, "missing", f"not found ({program.purpose})", program.remedy)
    return Finding(program.name, "ok", f"{program.version() or 'version unknown'} ({path})")


def install_commands() -> dict[str, str]:
    """Return purpose → one command that installs all system packages that are missing for it.

    The purposes are the virtual lab, and the scenarios that need further programs.
    """
    optional = [program for program, _users in _further_programs()]
    purposes = {"the virtual lab": programs.ALL, "all scenarios": [*programs.ALL, *optional]}
    commands: dict[str, str] = {}
    for purpose, needed in purposes.items():
        missing = [program.package for program in needed if program.package and program.find() is None]
        if missing and install(*missing) not in commands.values():
            commands[purpose] = install(*missing)
    return commands


def _optional_programs() -> Iterator[Finding]:
    """Check the programs that only some scenarios, or one route of transports, need."""
    yield from (_optional(program, users) for program, users in _further_programs())
    yield _optional(programs.MPTCPIZE, ["mptcp with 'via: direct'"])


def _further_programs() -> list[tuple[programs.Program, list[str]]]:
    """Return each program that only some scenarios need, with the names of these scenarios."""
    users: dict[str, list[str]] = {}
    needed: dict[str, programs.Program] = {}
    for name in scenario_names():
        with contextlib.suppress(MplabError):  # `_scenarios` reports it
            for program in programs_of(load_scenario(name)):
                needed.setdefault(program.name, program)
                users.setdefault(program.name, []).append(name)
    known = {program.name for program in programs.ALL}
    return [(program, users[name]) for name, program in sorted(needed.items()) if name not in known]


def _optional(program: programs.Program, users: Sequence[str]) -> Finding:
    scenarios = f"only for {', '.join(users)}"
    check = _program(program)
    if check.level == "missing":
        return Finding(program.name, "warning", f"not found ({program.purpose}; {scenarios})", program.remedy)
    return Finding(program.name, "ok", f"{check.found}; {scenarios}")


def _appium() -> Finding:
    if missing := fetched.wrong():
        return Finding("appium", "missing", f"not installed: {', '.join(missing)}", fetched.SETUP)
    try:
        fetched.check_node()
    except MplabError as error:
        return Finding("appium", "missing", str(error), programs.NODE.remedy)
    return Finding("appium", "ok", f"server and drivers are complete ({programs.APPIUM_DIR})")


def _attempt(name: str, fact: str, action: Callable[[], object]) -> Finding:
    try:
        action()
    except MplabError as error:
        return Finding(name, "missing", str(error), "see the message")
    return Finding(name, "ok", fact)


def _namespaces() -> Finding:
    how = "as root" if os.geteuid() == 0 else "in a user namespace"
    return _attempt("namespaces", f"private namespaces can be made {how}", check_namespaces)


def _transports() -> Iterator[Finding]:
    """Yield the findings of each transport's driver; a driver that cannot be imported is a finding."""
    for name in DRIVERS:
        yield from _checked(f"transport {name}", partial(_check_transport, name))


def _check_transport(name: str) -> Iterable[Finding]:
    return DRIVERS[name].check()


def _others() -> Iterator[Finding]:
    """Check the drivers of services, shapers, phones and proxies.

    Yield a finding for each driver that cannot be imported, then the findings of the default shaper and proxy.
    """
    kinds: dict[str, Mapping[str, object]] = {"service": SERVICES, "shaper": SHAPERS, "phone": PHONES, "proxy": PROXIES}
    for kind, drivers in kinds.items():
        for name in drivers:
            imported = _attempt(f"{kind} {name}", "", partial(drivers.__getitem__, name))
            if imported.level == "missing":
                yield imported
    yield from _checked("shaper", lambda: emulator_driver().check())
    yield from _checked("proxy", lambda: own_driver().check(None, ""))


def _checked(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except MplabError as error:
        yield Finding(name, "missing", str(error), "see the message")


def _congestion_control(name: str) -> Finding:
    try:
        problem, allowed = congestion.problem_with(name), congestion.allowed()
    except OSError as error:
        return Finding("congestion-control", "warning", f"{error.filename}: {error.strerror}", "make it readable")
    if problem is not None:
        return Finding("congestion-control", "warning", problem.text, problem.remedy)
    return Finding("congestion-control", "ok", f"allowed: {' '.join(allowed)}")


def _scenarios() -> Iterator[Finding]:
    for name in scenario_names():
        yield _attempt(
            f"scenario {name}",
            str(SCENARIOS[name].folder()),
            partial(load_scenario, name),
        )


def _links() -> Finding:
    count = len(list(LINKS_DIR.glob("*.yaml")))
    if not count:
        return Finding("links", "missing", f"no link condition in {LINKS_DIR}", "restore router-configs/links")
    return Finding("links", "ok", f"{count} link conditions in {LINKS_DIR}")


def _disk(runs_dir: Path) -> Finding:
    existing = next(path for path in (runs_dir, *runs_dir.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 1e9:.1f} GB free for {runs_dir}"
    if not os.access(existing, os.W_OK):
        return Finding("disk", "missing", f"{existing} cannot be written", "choose another folder with --runs")
    if free < _MIN_FREE_BYTES:
        return Finding("disk", "warning", text, f"a run may need {_MIN_FREE_BYTES / 1e9:g} GB")
    return Finding("disk", "ok", text)


def _memory() -> Finding:
    available = psutil.virtual_memory().available
    text = f"{available / 1e9:.1f} GB available"
    if available < _MIN_MEMORY_BYTES:
        return Finding("memory", "warning", text, "browser scenarios need about 2 GB")
    return Finding("memory", "ok", text)


def _load() -> Finding:
    cpus = os.cpu_count() or 1
    load = os.getloadavg()[0]
    text = f"load {load:.1f} on {cpus} CPUs"
    if load > cpus * _BUSY_LOAD_PER_CPU:
        return Finding("load", "warning", text, "a busy machine disturbs what is measured; let it become idle")
    return Finding("load", "ok", text)


def examine_lab(lab: LabFile, lab_file: str) -> Iterator[Finding]:
    """Check every router, server and phone of a lab; yield each finding immediately. Changes nothing.

    Args:
        lab: the lab file.
        lab_file: path of the lab file, for remedies.
    """
    machines = lab.machines().values()
    for machine in machines:
        if machine.section == "routers":
            yield from driver_of(machine).check(machine, lab_file)
    for name, phone in lab.phones.items():
        if phone.driver is not None:
            yield from phone_driver(phone.driver).check(lab, name, lab_file)
    for machine in machines:
        if machine.section != "routers":
            yield from driver_of(machine).check(machine, lab_file)
    if lab.proxy is not None:
        yield from proxy_driver_of(lab.proxy).check(lab.proxy, lab_file)
