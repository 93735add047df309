"""``adb forward``: ports of this host that lead to sockets of a phone."""

import contextlib
from collections.abc import Iterator

from mplab.base.errors import DeviceError
from mplab.base.undo import UndoStack
from mplab.drivers.phone.adb.link import Link

_GRANTED = "OKAY"


class Forwards:
    """Those of one phone; at the latest they are removed when it is given back.

    Args:
        link: to the phone.
        undo: of the phone.
    """

    def __init__(self, link: Link, undo: UndoStack) -> None:
        self._link = link
        self._open: set[int] = set()
        undo.register(f"{link.label}: forwards", self.close)

    @contextlib.contextmanager
    def to(self, remote: str) -> Iterator[int]:
        """A port of 127.0.0.1 that leads to `remote`, ``localabstract:NAME`` or ``tcp:PORT``, while it is needed.

        Nobody has to listen there yet.

        Raises:
            DeviceError: adb does not do it.
        """
        answer = self._link.ask(f"host-serial:{self._link.serial}:forward:tcp:0;{remote}")
        # ``OKAY``, then the port with its length in hexadecimal digits before it.
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
        """Remove all that are left."""
        for port in list(self._open):
            self._remove(port)

    def _remove(self, port: int) -> None:
        """One that adb has removed itself, because the phone was lost, needs nothing."""
        self._open.discard(port)
        self._link.ask(f"host-serial:{self._link.serial}:killforward:tcp:{port}")
