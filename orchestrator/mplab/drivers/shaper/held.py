"""What shapes in a lab (routers, servers, phones), held for a run: locked, watched, given back whatever happens."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import structlog

from mplab.base.state import state_directory as state_home
from mplab.base.undo import UndoJournal, UndoStack
from mplab.drivers.shaper.linux.place import LinuxServer, ShapingPhone, phone_shell, server_shell
from mplab.drivers.shaper.openwrt.router import Router
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.place import Place
from mplab.drivers.shaper.tc.shell import Shell
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.userfiles.lab import LabFile, PlaceFile, RouterFile, ServerFile, interface_of

_log = structlog.get_logger(__name__)


def undo_directory() -> Path:
    """``$XDG_STATE_HOME/mplab/undo``, by default in ``~/.local/state``: outlives a reboot, as shaping does."""
    return state_home() / "undo"


def full_name(lab: LabFile, name: str) -> str:
    """``router wifi``, ``server proxy``, ``phone phone-1``."""
    kind = "router" if name in lab.routers else "server" if name in lab.servers else "phone"
    return f"{kind} {name}"


def interfaces_of(lab: LabFile, name: str) -> list[str]:
    """The interfaces of a router, server or phone that are shaped."""
    own = interface_of(lab.places()[name])
    used = [
        place.interface or own
        for phone, file in lab.phones.items()
        for place in file.attachments().values()
        if place.place(phone) == name
    ]
    return [interface for interface in dict.fromkeys(used or [own]) if interface]


def open_shell(name: str, settings: PlaceFile) -> Shell:
    """A shell on what shapes, to be connected."""
    if isinstance(settings, RouterFile):
        return SshConnection(name, settings)
    return server_shell(name, settings) if isinstance(settings, ServerFile) else phone_shell(name, settings)


def state_directory(settings: PlaceFile) -> str:
    """Where its notes are."""
    if isinstance(settings, RouterFile):
        return Router.state_directory
    return LinuxServer.state_directory if isinstance(settings, ServerFile) else ShapingPhone.state_directory


def make_place(lab: LabFile, name: str, *, owner: Owner) -> Place:
    """What shapes, by its name in the lab file; not yet held."""
    settings, interfaces = lab.places()[name], interfaces_of(lab, name)
    if isinstance(settings, RouterFile):
        return Router(name, settings, owner=owner, interfaces=interfaces)
    if isinstance(settings, ServerFile):
        return LinuxServer(name, settings, owner=owner, interfaces=interfaces)
    return ShapingPhone(name, settings, owner=owner, interfaces=interfaces)


@contextlib.contextmanager
def held_places(
    lab: LabFile, names: Iterable[str], *, run_id: str = "", directory: Path | None = None
) -> Iterator[dict[str, Place]]:
    """Hold routers, servers and phones of a lab, by name; what dead runs have left is taken back first.

    Args:
        lab: the lab file.
        names: which of its places.
        run_id: for messages to others.
        directory: of the undo journal; default: `undo_directory`.

    Raises:
        LabNotReadyError: one of them cannot be held; none is then.
    """
    directory = directory if directory is not None else undo_directory()
    for item in UndoJournal.recover(directory):
        _log.info("left by a dead run", step=item.name, owner_pid=item.owner_pid, failure=item.failure)
    with UndoJournal(directory) as journal, UndoStack(journal) as undo, contextlib.ExitStack() as stack:
        owner = Owner(undo, run_id)
        yield {name: stack.enter_context(make_place(lab, name, owner=owner)) for name in sorted(names)}
