"""Settings of the TCP sockets of a cell that an experiment or a transport may choose."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SocketSettings:
    """Settings of the TCP sockets between agent and proxy in one cell.

    Attributes:
        congestion_control: algorithm of every socket at both ends.
        receive_buffer_bytes: maximum receive buffer of the phone's sockets, bytes; None: the kernel's own maximum.
    """

    congestion_control: str
    receive_buffer_bytes: int | None = None
