"""A stack that is lent to a run: as it was before when the run is over, or, when it was killed, before the next one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from mplab.base.configs import write_private
from mplab.base.errors import LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.drivers.proxy.docker.engine import connected
from mplab.drivers.proxy.docker.sidecar import remove_sidecars
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings


@contextmanager
def exclusive(stack: DockerStack, *, run_id: str = "") -> Iterator[None]:
    """Nobody else changes the stack meanwhile.

    Raises:
        LabNotReadyError: a run has it; the message says which.
    """
    with resource_lock(stack.resource, run_id=run_id):
        yield


@contextmanager
def borrowed(stack: DockerStack) -> Iterator[None]:
    """Have it up for a run, within `exclusive`.

    Raises:
        LabNotReadyError: containers of the project run that 'mplab proxy up' has not started; or it does not come up.
    """
    give_back(stack)
    before = stack.up_with()
    if before is None and (running := [state.service for state in stack.status()]):
        raise LabNotReadyError(
            f"containers of the project {stack.settings.project} run already, and nobody here knows how they were "
            f"started ({', '.join(running)}): end them by 'mplab proxy down', or choose another project"
        )
    # On disk before anything is changed: what a killed process leaves is found by it.
    write_private(_note(stack), json.dumps({"before": before and asdict(before)}))
    try:
        if before is not None:
            stack.down(forget=False)  # also what the run does not need
        stack.up(build=False, remember=False)
        yield
    finally:
        give_back(stack)


def give_back(stack: DockerStack) -> bool:
    """Have the stack as it was before it was borrowed; whether it was.

    Raises:
        LabNotReadyError: the engine cannot be used, or what ran before does not come up.
    """
    note = _note(stack)
    try:
        before = json.loads(note.read_text())["before"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        before = None  # it was killed while it wrote: nothing had been changed, or nothing ran
    _remove_sidecars(stack)
    stack.down(forget=False)
    if before is not None:
        DockerStack(StackSettings.read(before)).up(build=False)
    note.unlink(missing_ok=True)
    return True


def forget(stack: DockerStack) -> None:
    """Somebody decides by hand what runs: what was before does not matter any more."""
    if _note(stack).exists():
        _remove_sidecars(stack)
        _note(stack).unlink(missing_ok=True)


def _note(stack: DockerStack) -> Path:
    return stack.directory.with_name(f"{stack.settings.project}.borrowed.json")


def _remove_sidecars(stack: DockerStack) -> None:
    with connected(stack.url) as client:
        remove_sidecars(client, stack.settings.project)
