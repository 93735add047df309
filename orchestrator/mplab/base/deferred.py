"""Deferred imports: the only imports allowed inside functions (a test reports all others)."""

from collections.abc import Iterator
from contextlib import contextmanager

from mplab.base.errors import LabNotReadyError
from mplab.base.extras import advice


@contextmanager
def deferred(why: str) -> Iterator[None]:
    """Mark imports inside a function and state why they are not at the top of the module.

    ::

        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.servers import open_servers

    Args:
        why: reason, such as start-up time.

    Raises:
        LabNotReadyError: the extra that has an imported module is not installed; the message names the command that
            installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if message := advice(error):
            raise LabNotReadyError(message) from error
        raise
