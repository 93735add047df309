"""Connect to one phone through an adb server (`Link`), run commands on the phone, and forward ports to it."""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping

import adbutils

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.polling import wait_until
from mplab.base.undo import UndoStack
from mplab.drivers.phone.adb import wire
from mplab.drivers.phone.adb.server import AdbServer

CONNECT_TIMEOUT_S = 20.0
BOOT_TIMEOUT_S = 180.0
_POLL_S = 0.1
_RETRY_S = 1.0
_ADDRESS = re.compile(r".+:\d+")

FAILURES = (adbutils.AdbError, OSError, EOFError, ValueError)
"""Exceptions that adbutils raises when the server or the phone fails."""


class Link:
    """The connection to one phone.

    Args:
        server: a running adb server.
        serial: serial number; for a phone over TCP, ``host:port``, to which `connect` connects.
        name: name of the phone, for messages.
    """

    def __init__(self, server: AdbServer, serial: str, *, name: str = "") -> None:
        self.server = server
        self.serial = serial
        self.label = f"{name} ({serial})" if name and name != serial else serial
        """Name and serial of the phone, for messages."""

    @property
    def device(self) -> adbutils.AdbDevice:
        """The phone as an object of adbutils."""
        return self.server.client.device(self.serial)

    @property
    def over_tcp(self) -> bool:
        """True when the phone is connected over TCP."""
        return _ADDRESS.fullmatch(self.serial) is not None

    def state(self) -> str:
        """Return adb's state of the phone: ``device`` (usable), ``offline``, ``unauthorized``, ….

        Return "" if the server does not know the phone, or does not answer.
        """
        with contextlib.suppress(*FAILURES):
            return next((str(info.state) for info in self.server.client.list() if info.serial == self.serial), "")
        return ""

    def connect(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Wait until adb can use the phone. Connect to the phone first if it is reached over TCP.

        Raises:
            LabNotReadyError: the phone is missing, has not authorized this host, or does not answer.
        """
        deadline = time.monotonic() + timeout_s
        tried = 0.0
        while (state := self.state()) != "device":
            now = time.monotonic()
            if now > deadline:
                raise LabNotReadyError(f"{self.label}: {self._why(state, timeout_s)}")
            # Do not connect again while the phone asks its user to authorize this host: that would close the dialog.
            if self.over_tcp and state in {"", "offline"} and now - tried > _RETRY_S:
                tried = now
                if state:
                    self._server_call("disconnect")
                self._server_call("connect")
            time.sleep(_POLL_S)

    def reconnect(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Disconnect the phone and connect it again. Raises LabNotReadyError when the phone does not return."""
        if self.over_tcp:
            self._server_call("disconnect")
        else:
            self.ask(f"host-serial:{self.serial}:reconnect")
        self.connect(timeout_s)

    def wait_boot(self, timeout_s: float = BOOT_TIMEOUT_S) -> None:
        """Wait until Android has booted and its services answer. Raises LabNotReadyError after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise LabNotReadyError(f"{self.label}: has not booted within {timeout_s:g} s: look at its screen")
            with contextlib.suppress(DeviceError):
                self.connect(max(left, 1.0))
                if self.run("getprop sys.boot_completed", timeout_s=10).stdout.strip() == b"1":
                    return
            time.sleep(_POLL_S)

    def run(self, command: str, *, stdin: bytes = b"", timeout_s: float = 30.0) -> wire.Output:
        """Run a command line as adb's shell user. Raises DeviceError after `timeout_s` or when the phone is lost."""
        try:
            return wire.run(self.server.client, self.serial, command, stdin=stdin, timeout_s=timeout_s)
        except wire.LateError as error:
            text = f"no answer within {timeout_s:g} s"
            raise DeviceError(self.label, text, command=(command,)) from error
        except wire.LostError as error:
            raise DeviceError(self.label, f"was lost: {self.whereabouts()}", command=(command,)) from error
        except FAILURES as error:
            raise DeviceError(self.label, f"{error}; {self.whereabouts()}", command=(command,)) from error

    def ask(self, *services: str, timeout_s: float = 10.0) -> str:
        """Request adb services on one connection. Return the text that the server then sends; "" on any failure.

        Args:
            services: services in order, e.g. ``host:transport:SERIAL``, ``reconnect``.
            timeout_s: limit for each answer, s.
        """
        with contextlib.suppress(*FAILURES), self.server.client.open(*services, timeout_s=timeout_s) as connection:
            return str(connection.read_until_close())
        return ""

    def whereabouts(self) -> str:
        """Return the phone's state in adb as a phrase for messages: ``adb says: offline``."""
        return f"adb says: {self.state() or 'no such device'}"

    def _server_call(self, verb: str) -> None:
        with contextlib.suppress(*FAILURES):
            if verb == "connect":
                self.server.client.connect(self.serial, timeout=5.0)
            else:
                self.server.client.disconnect(self.serial)

    def _why(self, state: str, waited_s: float) -> str:
        if state == "unauthorized":
            return "has not allowed this host: unlock its screen and allow USB debugging, always from this computer"
        if state == "no permissions":
            return "this user may not use it: see 'udev rules' in docs/how-to/phone.md"
        if state:
            return f"is {state} for {waited_s:g} s: unplug it and plug it in again, or reboot it"
        with contextlib.suppress(*FAILURES):
            others = ", ".join(f"{info.serial} ({info.state})" for info in self.server.client.list())
            where = "nothing answers at this address" if self.over_tcp else "is it plugged in, is USB debugging on?"
            return f"not there after {waited_s:g} s: {where} adb sees: {others or 'no phone'}"
        return "its adb server does not answer"


_MARK = "=mplab="


def asking(commands: Mapping[str, str]) -> str:
    """Return a script that runs `commands` (name → command line), and prints a mark with the name before each output.

    Standard error is discarded.
    """
    return "; ".join(f"echo {_MARK}{name}; ({command}) 2>/dev/null" for name, command in commands.items())


def split_answers(text: str) -> dict[str, str]:
    """Split the output of a script made by `asking`; return name of command → its output."""
    parts = re.split(rf"^{_MARK}(\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


_GRANTED = "OKAY"


class Forwards:
    """Port forwards of one phone. Remaining forwards are removed when the phone is released.

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
        """Forward a port of 127.0.0.1 to a socket on the phone during the context, and yield the port.

        The forward can be made before a process listens on the socket.

        Args:
            remote: the socket, ``localabstract:NAME`` or ``tcp:PORT``.

        Raises:
            DeviceError: adb did not make the forward.
        """
        answer = self._link.ask(f"host-serial:{self._link.serial}:forward:tcp:0;{remote}")
        # The answer is ``OKAY``, 4 hexadecimal digits (length of the port), and the port.
        if not answer.startswith(_GRANTED) or not answer[8:].isdigit():
            reason = answer[8:] or self._link.whereabouts()
            raise DeviceError(self._link.label, f"adb forward to {remote} was not made: {reason}")
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


def only_serial(server: AdbServer, name: str, timeout_s: float = CONNECT_TIMEOUT_S) -> str:
    """Return the serial of the only phone that is connected to an adb server.

    Raises:
        LabNotReadyError: the server sees no phone within `timeout_s`, sees several phones, or does not answer.
    """
    try:
        serials = wait_until(lambda: [str(info.serial) for info in server.client.list()], timeout_s, interval_s=_POLL_S)
    except FAILURES as error:
        raise LabNotReadyError(f"{name}: its adb server does not answer: {error}") from error
    if not serials:
        raise LabNotReadyError(
            f"{name}: no phone: plug one in and allow USB debugging, or give 'serial: HOST:PORT' of one over TCP"
        )
    if len(serials) > 1:
        listed = ", ".join(sorted(serials))
        raise LabNotReadyError(f"{name}: several phones and no serial: choose one, 'serial: {serials[0]}'; {listed}")
    return serials[0]
