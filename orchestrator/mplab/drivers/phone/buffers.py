"""Limit the receive buffers of a phone's TCP sockets."""

from mplab.base.errors import DeviceError
from mplab.base.undo import UndoStack
from mplab.drivers.phone.protocol import Phone

RECEIVE_BUFFERS = "net.ipv4.tcp_rmem"
"""Kernel parameter: minimum, initial and maximum receive buffer of a TCP or Multipath TCP socket, bytes."""

_FILE = f"/proc/sys/{RECEIVE_BUFFERS.replace('.', '/')}"


def limit_receive_buffer(phone: Phone, most_bytes: int, undo: UndoStack) -> None:
    """Set the maximum receive buffer of all TCP sockets that the phone opens from now on, and read it back.

    Raises:
        DeviceError: the phone's kernel did not accept the limit.
    """
    before = read_receive_buffers(phone)
    undo.register(f"{phone.name}: receive buffers", lambda: phone.sysctl({RECEIVE_BUFFERS: " ".join(before)}))
    wanted = [str(min(int(size), most_bytes)) for size in before[:2]] + [str(most_bytes)]
    phone.sysctl({RECEIVE_BUFFERS: " ".join(wanted)})
    if (found := read_receive_buffers(phone)) != wanted:
        raise DeviceError(phone.name, f"{RECEIVE_BUFFERS} is {' '.join(found)} after it was set to {' '.join(wanted)}")


def read_receive_buffers(phone: Phone) -> list[str]:
    """Return minimum, initial and maximum receive buffer of the phone's TCP sockets, bytes. Raises DeviceError."""
    sizes = phone.shell(["cat", _FILE]).stdout.split()
    if len(sizes) != 3 or not all(size.isdecimal() for size in sizes):
        raise DeviceError(phone.name, f"{RECEIVE_BUFFERS}: three numbers were expected, found {sizes}")
    return sizes
