"""Fetch Appium and its browser driver, which scenarios with a browser need; prints sizes before it does."""

from typing import Annotated

import typer

from mplab.base import fetched
from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.base.programs import APPIUM_DIR
from mplab.cli.output import err
from mplab.lab.find import running_nodes
from mplab.lab.resources import VIRTUAL_LAB


def setup(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be fetched, without fetching it.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what was fetched.")] = False,
) -> None:
    if dry_run and remove:
        raise InputError("--dry-run and --remove: give only one of them")
    if remove:
        done = "removed" if _remove() else "nothing to remove"
        err.print(f"{APPIUM_DIR}: {done}", soft_wrap=True)
        return
    complete(dry_run=dry_run)


def _remove() -> bool:
    """Remove the Node packages; return whether there were any.

    Raises:
        LabNotReadyError: a lab is running, which may use them.
    """
    if labs := sorted({node.lab for node in running_nodes()}):
        raise LabNotReadyError(f"{APPIUM_DIR}: in use by a running lab ({', '.join(labs)}). End it first")
    with resource_lock(VIRTUAL_LAB):  # no lab starts during the removal
        return fetched.remove()


def complete(*, dry_run: bool = False) -> None:
    """Fetch the Node packages that are missing, and print what is fetched, its size, its place and how to undo it.

    Args:
        dry_run: only print.

    Raises:
        LabNotReadyError: see `fetched.fetch`.
    """
    missing = fetched.wrong()
    if not missing:
        if dry_run:
            err.print(f"Appium and its drivers are complete: {APPIUM_DIR}", soft_wrap=True)
        return
    err.print(f"── Node packages: {', '.join(missing)}", soft_wrap=True)
    err.print(
        f"   {fetched.DOWNLOAD_MB} MB to download, {fetched.DISK_MB} MB in {APPIUM_DIR} (undo: mplab setup --remove)",
        soft_wrap=True,
    )
    if not dry_run:
        fetched.fetch()
