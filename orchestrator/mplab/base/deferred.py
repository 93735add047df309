"""Deferred imports: the only imports allowed inside functions (a test reports all others)."""

from collections.abc import Iterator
from contextlib import contextmanager

from mplab.base.errors import LabNotReadyError


@contextmanager
def deferred(why: str, *, extra: str = "") -> Iterator[None]:
    """Mark imports inside a function and state why they are not at the top of the module.

    ::

        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.servers import open_servers

    Args:
        why: reason: start-up time, or an extra that may not be installed.
        extra: extra of the distribution that installs the imported module; "": it is always installed.

    Raises:
        LabNotReadyError: the extra is not installed; the message gives the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not extra or (error.name or "").partition(".")[0] == "mplab":
            raise
        raise LabNotReadyError(f"{why}: {error.name} is not installed. Run: pip install 'mplab[{extra}]'") from error
