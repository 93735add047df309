"""Check lab files that come with a run or bundle: a file that uses real resources needs this user's consent."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mplab.base.errors import InputError
from mplab.base.files import explained, state_directory
from mplab.drivers.proxy import driver_of
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.userfiles.lab import LabFile
from mplab.userfiles.labuse import LabUse


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
    """Record that this user has started a run with this lab file. Raises MplabError if the record cannot be written."""
    if use.file is None or not (found := list(outside(use.file))):
        return
    path = _note(use.file)
    with explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text("\n".join([*found, ""]), encoding="utf-8")


def check_lab(use: LabUse, whose: object) -> None:
    """Check that a lab file uses nothing outside the virtual lab, or that this user has run an experiment with it.

    Args:
        use: the lab.
        whose: the bundle or run directory that its file came with.

    Raises:
        InputError: neither is true; the message lists the resources that the lab file would use.
    """
    if use.file is None or not (found := list(outside(use.file))) or _note(use.file).is_file():
        return
    raise InputError(
        f"{whose}: lab.yaml: its lab would be used from this host: {'; '.join(found)}. Read lab.yaml; --allow-lab uses "
        "it, --lab FILE another one"
    )


def _note(lab: LabFile) -> Path:
    return state_directory() / "labs" / hashlib.sha256(lab.model_dump_json().encode()).hexdigest()[:32]
