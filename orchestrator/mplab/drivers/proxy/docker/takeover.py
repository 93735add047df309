"""Use a stack of containers for a run, and restore the stack's previous state afterwards.

If the run was killed, the next process that uses the stack restores the state.
"""

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
    """Lock the stack against changes by other processes while the context is entered.

    Raises:
        LabNotReadyError: another process holds the lock; the message names its run.
    """
    with resource_lock(stack.resource, run_id=run_id):
        yield


@contextmanager
def taken_over(stack: DockerStack) -> Iterator[None]:
    """Return a context in which the stack of containers runs; at its end, the stack's previous state is restored.

    The caller must hold the lock of `exclusive`.

    Raises:
        LabNotReadyError: the project has containers that 'mplab proxy up' did not start, or the stack does not start.
    """
    restore_state(stack)
    before = stack.up_with()
    if before is None and (running := [state.service for state in stack.status()]):
        raise LabNotReadyError(
            f"containers of the project {stack.settings.project} already run, and 'mplab proxy up' on this "
            f"machine did not start them ({', '.join(running)}). Stop them by 'mplab proxy down', or choose another "
            "project"
        )
    # Written before the first change, so that the next process can restore the state if this one is killed.
    write_private(_note(stack), json.dumps({"before": before and asdict(before)}))
    try:
        if before is not None:
            stack.down(forget=False)  # also stops services that the run does not need
        stack.up(build=False, remember=False)
        yield
    finally:
        restore_state(stack)


def restore_state(stack: DockerStack) -> bool:
    """Restore the state that the stack had before `taken_over`; return False if no run has taken it over.

    Raises:
        LabNotReadyError: the engine cannot be used, or the previous services do not start.
    """
    note = _note(stack)
    try:
        before = json.loads(note.read_text())["before"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        before = None  # killed during the write: nothing had been changed, or nothing ran before
    _remove_sidecars(stack)
    stack.down(forget=False)
    if before is not None:
        DockerStack(StackSettings.read(before)).up(build=False)
    note.unlink(missing_ok=True)
    return True


def forget(stack: DockerStack) -> None:
    """Discard the state that `restore_state` would restore, because a user now controls the stack by hand."""
    if _note(stack).exists():
        _remove_sidecars(stack)
        _note(stack).unlink(missing_ok=True)


def _note(stack: DockerStack) -> Path:
    return stack.directory.with_name(f"{stack.settings.project}.borrowed.json")


def _remove_sidecars(stack: DockerStack) -> None:
    with connected(stack.url) as client:
        remove_sidecars(client, stack.settings.project)
