"""Check whether nodes of the virtual lab can use a congestion control.

A network namespace accepts a default congestion control only if the host allows it to unprivileged programs
(``tcp_allowed_congestion_control``); otherwise, programs that choose none, like the origin's, use Reno. Agent and
proxy choose theirs for each socket.
"""

import socket
from pathlib import Path
from typing import NamedTuple

SYSCTL = Path("/proc/sys/net/ipv4")


class CongestionProblem(NamedTuple):
    """Why an algorithm cannot be used, and the remedy."""

    text: str
    remedy: str


def allowed() -> list[str]:
    """Return the algorithms that the host allows to network namespaces. Raises OSError: they cannot be read."""
    return (SYSCTL / "tcp_allowed_congestion_control").read_text().split()


def missing(algorithm: str) -> CongestionProblem | None:
    """Return why this kernel cannot use an algorithm; None: it can. Raises OSError: settings cannot be read.

    For root, the kernel loads a missing module when a socket requests the algorithm; it then stays loaded.
    """
    available = (SYSCTL / "tcp_available_congestion_control").read_text().split()
    if algorithm in available or accepted(algorithm):
        return None
    remedy = f"as root: modprobe tcp_{algorithm}; or another congestion_control in the experiment"
    return CongestionProblem(f"{algorithm} is not among {' '.join(available)}", remedy)


def accepted(algorithm: str) -> bool:
    """Return whether a socket of this process may use an algorithm."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        try:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        except OSError:
            return False
    return True


def problem_with(algorithm: str) -> CongestionProblem | None:
    """Return why the lab's origin cannot use an algorithm; None: it can. Raises OSError: settings cannot be read."""
    if (problem := missing(algorithm)) is not None:
        return problem
    names = allowed()
    if algorithm in names:
        return None
    text = f"{algorithm} is not among the allowed ones ({' '.join(names)}): the lab's origin will use reno"
    return CongestionProblem(
        text, f"as root: sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join([*names, algorithm])}'"
    )
