"""Program that opens a test connection to the origin with a socket as applications open it, and describes it.

It runs on the phone as a script, without packages, and with the words before it that start applications
(`Node.launcher`). So it tests the same sockets, lookups and routes. It prints one JSON object (`ActiveCheck`), and
keeps the connection open until it is stopped.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator

PORT = 80
_SO_PROTOCOL = 38
_IPPROTO_MPTCP = 262
_SOL_MPTCP, _MPTCP_INFO, _INFO_BYTES = 284, 1, 16
_FLAGS = slice(8, 12)
_FELL_BACK = 1
_CONGESTION_BYTES = 16
_POLL_S = 0.005
_SS_S = 5.0
_READ_BYTES = 1 << 10
_OK = b"HTTP/1.1 200 "
_PEER_COLUMN = 3
_HOLD_S = 20.0


def main(host: str, path: str, ss: str, subflows: int, timeout_s: float) -> Generator[dict[str, object], None, None]:
    """Request a large file over HTTP, receive its begin, wait for the subflows, yield a description of the connection.

    The connection ends when the generator is closed. Only about one receive buffer of the file is sent, because nothing
    reads the rest.

    Args:
        host: host name of the server.
        path: path of the file.
        ss: path of the program ss.
        subflows: number of subflows to wait for.
        timeout_s: maximum time, s.

    Raises:
        OSError: the server did not answer, or `ss` cannot be run.
    """
    deadline = time.monotonic() + timeout_s
    address = socket.getaddrinfo(host, PORT, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    with socket.socket() as connection:
        connection.settimeout(timeout_s)
        connection.connect(address)
        begun = time.monotonic()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        if not connection.recv(_READ_BYTES).startswith(_OK):
            raise OSError(f"{host} did not answer with the file {path}")
        answer_ms = (time.monotonic() - begun) * 1000
        multipath = _is_multipath(connection)
        while True:
            local = _local_addresses(ss, str(address[0]))
            enough = len(local) >= subflows
            if enough or not multipath or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        algorithm = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION_BYTES)
        yield {
            "ok": enough,
            **({} if enough else {"error": f"{len(local)} of {subflows} subflows after {timeout_s:g} s"}),
            "transport": "mptcp" if multipath else "tcp",
            "via": "direct",
            "mptcp": multipath,
            "subflows": len(local),
            "local": local,
            "congestion_control": algorithm.partition(b"\0")[0].decode(),
            "receive_buffer_bytes": connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            "answer_ms": round(answer_ms, 3),
        }


def _is_multipath(connection: socket.socket) -> bool:
    """Return whether the connection is Multipath TCP and has not fallen back to plain TCP."""
    if connection.getsockopt(socket.SOL_SOCKET, _SO_PROTOCOL) != _IPPROTO_MPTCP:
        return False
    try:
        info = connection.getsockopt(_SOL_MPTCP, _MPTCP_INFO, _INFO_BYTES)
    except OSError:
        return False
    return not int.from_bytes(info[_FLAGS], sys.byteorder) & _FELL_BACK


def _local_addresses(ss: str, server: str) -> list[str]:
    """Return the local addresses of the established TCP sockets that are connected to `server`, sorted.

    Raises:
        OSError: `ss` cannot be started, or does not end in time.
    """
    argv = [ss, "-tnH", "state", "established", "dst", f"{server}:{PORT}"]
    try:
        shown = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_SS_S).stdout
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{ss} did not end within {_SS_S:g} s") from error
    rows = (line.split() for line in shown.splitlines())
    return sorted({row[2].rpartition(":")[0].partition("%")[0] for row in rows if len(row) > _PEER_COLUMN})


if __name__ == "__main__":
    _, host_name, path_of_file, program, wanted, limit_s = sys.argv
    described = main(host_name, path_of_file, program, int(wanted), float(limit_s))
    try:
        print(json.dumps(next(described)), flush=True)
        time.sleep(_HOLD_S)  # until it is stopped
    except OSError as error:
        print(json.dumps({"ok": False, "error": str(error)}), flush=True)
