"""Check, before anything is written, that a run can begin here, and that this user allows its hooks and lab."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from mplab.base import congestion, fetched
from mplab.base.enter import check_namespaces
from mplab.base.errors import LabNotReadyError
from mplab.base.files import explained, state_directory
from mplab.base.programs import ALL, FOR_REAL, FOR_UI, MPTCPIZE, Program
from mplab.drivers.proxy import driver_of
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.format.hooks import Hooks
from mplab.format.record import json_of
from mplab.lab.catalog import catalog, programs_of
from mplab.lab.driver import phone_driver, programs_of_lab
from mplab.run.arguments import Argument, ArgumentError
from mplab.run.hostside.hooks import check_programs
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.labs.lab import LabFile
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse


def check_ready_for(experiment: Experiment, *, node_packages: bool = True) -> None:
    """Raise LabNotReadyError if something that an experiment needs is missing.

    Args:
        experiment: the experiment.
        node_packages: also check Appium and the other packages that ``mplab setup`` fetches.
    """
    scenarios = catalog().on(experiment.lab)
    needs_ui = any(scenarios[use.name].needs_ui for use in experiment.scenarios)
    further = programs_of_run(experiment)
    check_ready(needs_ui=needs_ui, further=further, use=experiment.lab, node_packages=node_packages)
    check_programs(experiment.hooks)


def check_ready(
    *, needs_ui: bool, further: Iterable[Program] = (), use: LabUse = VIRTUAL, node_packages: bool = True
) -> None:
    """Raise LabNotReadyError if this machine lacks a program that the lab needs, or one of the programs `further`.

    Args:
        needs_ui: scenarios have a user interface: check the browser and, with `node_packages`, Appium.
        further: additional programs.
        use: the lab.
        node_packages: see `check_ready_for`.
    """
    always, title = (FOR_REAL, "this machine") if use.real else (ALL, "the virtual lab")
    needed = [program for program in always if needs_ui or use.real or program not in FOR_UI]
    needed += [program for program in further if program not in needed]
    missing = [f"{program.name}: {program.remedy}" for program in needed if program.find() is None]
    if needs_ui and node_packages and (absent := fetched.wrong()):
        missing.append(f"{', '.join(absent)}: {fetched.SETUP}")
    if missing:
        raise LabNotReadyError(f"{title} is not ready; 'mplab doctor' says more. Missing: " + "; ".join(missing))
    if not use.real:
        check_namespaces()


def doubts_about(experiment: Experiment) -> Iterator[str]:
    """Yield a text for each doubt that does not stop a run on this machine."""
    if experiment.lab.real:
        return
    with suppress(OSError):  # the kernel may hide its settings
        for name in dict.fromkeys(experiment.sockets(use.label).congestion_control for use in experiment.transports):
            problem = congestion.problem_with(name)
            if problem is not None:
                yield f"congestion_control: {problem.text}. To change this: {problem.remedy}"


def programs_of_run(experiment: Experiment) -> list[Program]:
    """Return the programs for a run's scenarios, transports, phone and routers.

    Those that every lab needs are not added.
    """
    scenarios = catalog().on(experiment.lab)
    programs = [program for use in experiment.scenarios for program in programs_of(scenarios[use.name], use.parameters)]
    direct = [MPTCPIZE] if experiment.direct_multipath else []
    return [*programs, *direct, *programs_of_lab(experiment.lab)]


def identify_real_phone(use: LabUse) -> dict[str, object]:
    """Check that a run can use a real phone; return the phone's entries for the manifest.

    Other phones start with their lab: {} is returned.

    Raises:
        LabNotReadyError: the phone is missing, in use, or not rooted.
    """
    identity = phone_driver(use.kind).identify(use)
    return {"identity": identity} if identity else {}


def allow(hooks: Hooks) -> None:
    """Record that this user allows the commands of `hooks`: the user has started a run with them. Raises MplabError."""
    if hooks:
        _write_note(_hooks_note(hooks), hooks.text())


def check_allowed(hooks: Hooks, whose: object) -> None:
    """Raise ArgumentError unless this user has allowed `hooks` on this machine; `whose`: see `foreign`."""
    if hooks and not _hooks_note(hooks).is_file():
        raise foreign(hooks, whose)


def foreign(hooks: Hooks, whose: object) -> ArgumentError:
    """Return the error for hooks that this user has not allowed; `whose`: the bundle or run directory with them."""
    return ArgumentError(
        f"{whose}: its hooks are commands that would be run on this host: {hooks.text()}. Read them; ",
        {Argument.ALLOW_HOOKS: "runs them"},
    )


def outside(lab: LabFile) -> Iterator[str]:
    """Yield a phrase for each resource that a lab uses outside its own namespaces: routers, phones, containers."""
    for machine in lab.reachable().values():
        yield reachable_driver_of(machine).uses(machine)
    for name, phone in lab.phones.items():
        if phone.kind is not None and (used := phone.kind.uses(name, phone)):
            yield used
    if used := driver_of(lab.proxy).uses(lab.proxy):
        yield used


def remember_lab(use: LabUse) -> None:
    """Record that this user has started a run with the lab file of `use`. Raises MplabError: it cannot be recorded."""
    if use.file is not None and (resources := list(outside(use.file))):
        _write_note(_lab_note(use.file), "\n".join(resources))


def check_lab(use: LabUse, whose: object, *, replaceable: bool = False) -> None:
    """Raise ArgumentError if a lab file uses resources outside the virtual lab that this user has not allowed.

    A user allows them by running an experiment with the lab file.

    Args:
        use: the lab.
        whose: the bundle or run directory that the lab file came with.
        replaceable: the caller takes the argument ``lab``, for the message.

    Raises:
        ArgumentError: the message lists the resources.
    """
    if use.file is None or not (resources := list(outside(use.file))) or _lab_note(use.file).is_file():
        return
    raise ArgumentError(
        f"{whose}: lab.yaml: its lab would be used from this host: {'; '.join(resources)}. Read lab.yaml; ",
        {Argument.ALLOW_LAB: "uses it"} | ({Argument.LAB: "another one"} if replaceable else {}),
    )


def _hooks_note(hooks: Hooks) -> Path:
    return _note("hooks", json.dumps(json_of(hooks), sort_keys=True))


def _lab_note(lab: LabFile) -> Path:
    return _note("labs", lab.model_dump_json())


def _note(folder: str, content: str) -> Path:
    """Return the path of the file that records that this user has allowed `content`."""
    return state_directory() / folder / hashlib.sha256(content.encode()).hexdigest()[:32]


def _write_note(path: Path, text: str) -> None:
    with explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
