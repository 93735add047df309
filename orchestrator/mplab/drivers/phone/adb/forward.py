"""Forward ports of this host to sockets of a phone (``adb forward``)."""

import contextlib
from collections.abc import Iterator

from mplab.base.errors import DeviceError
from mplab.base.undo import UndoStack
from mplab.drivers.phone.adb.link import Link

_GRANTED = "OKAY"


class Forwards:
    """Port forwards of one phone. Forwards that still exist when the phone is released are removed then.

    Args:
        link: connection to the phone.
        undo: undo stack of the phone.
    """

    def __init__(self, link: Link, undo: UndoStack) -> None:
        self._link = link
        self._open: set[int] = set()
        undo.register(f"{link.label}: forwards", self.close)

    @contextlib.contextmanager
    def to(self, remote: str) -> Iterator[int]:
        """Yield a port of 127.0.0.1 that leads to `remote`: ``localabstract:NAME`` or ``tcp:PORT``.

        The forward can be made before a process listens on `remote`. It is removed when the context ends.

        Raises:
            DeviceError: adb did not make the forward.
        """
        answer = self._link.ask(f"host-serial:{self._link.serial}:forward:tcp:0;{remote}")
        # The answer is ``OKAY``, 4 hexadecimal digits (length of the port), and the port.
        if not answer.startswith(_GRANTED) or not answer[8:].isdigit():
            said = answer[8:] or self._link.whereabouts()
            raise DeviceError(self._link.label, f"adb forward to {remote} was not made: {said}")
        port = int(answer[8:])
        self._open.add(port)
        try:
            yield port
        finally:
            self._remove(port)

    def close(self) -> None:
        """Remove all remaining forwards."""
        for port in list(self._open):
            self._remove(port)

    def _remove(self, port: int) -> None:
        """Remove a forward. Errors are ignored: if the phone was lost, adb has already removed the forward."""
        self._open.discard(port)
        self._link.ask(f"host-serial:{self._link.serial}:killforward:tcp:{port}")
