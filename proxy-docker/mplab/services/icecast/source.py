"""Send an MP3 file of constant bit rate to Icecast in a loop and in real time: the source of the radio station.

``python source.py FILE KBPS ADDRESS PORT MOUNT PASSWORD_FILE`` runs until SIGTERM. FILE consists of complete frames of
24 ms (48 kHz). ffmpeg cannot be used instead: it takes the password only from its command line, and prints it.
"""

import base64
import itertools
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

FRAME_S = 0.024
"""Duration of an MP3 frame: 1152 samples at 48 kHz."""

_CONNECT_TIMEOUT_S = 10.0
_RETRY_S = 0.05
_BLOCK = 4096


def _connect(address: str, port: int, deadline: float) -> socket.socket:
    """Connect to Icecast, with retries until `deadline` (monotonic clock), as it may still start. Raises OSError."""
    while True:
        try:
            return socket.create_connection((address, port), timeout=_CONNECT_TIMEOUT_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)


def _begin(address: str, port: int, mount: str, password: str) -> socket.socket:
    """Connect to Icecast and begin the PUT request. Return the connection; exit with a message if Icecast refuses."""
    connection = _connect(address, port, time.monotonic() + _CONNECT_TIMEOUT_S)
    account = base64.b64encode(f"source:{password}".encode()).decode()
    head = [
        f"PUT {mount} HTTP/1.1",
        f"Host: {address}:{port}",
        f"Authorization: Basic {account}",
        "Content-Type: audio/mpeg",
        "Ice-Public: 0",
        "Expect: 100-continue",
    ]
    connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    answer = connection.recv(_BLOCK).decode(errors="replace").splitlines()
    if not answer or answer[0].split()[1:2] not in (["100"], ["200"]):
        sys.exit(f"source: Icecast refused the source: {answer[0] if answer else 'no answer'}")
    return connection


def _play(connection: socket.socket, sound: bytes, kbps: int) -> None:
    """Send the MP3 frames of `sound` in a loop, each when it is due. Only an OSError ends the loop."""
    frame_bytes = round(kbps * 1000 * FRAME_S / 8)
    frames = [sound[at : at + frame_bytes] for at in range(0, len(sound), frame_bytes)]
    begin = time.monotonic()
    for number, frame in enumerate(itertools.cycle(frames)):
        time.sleep(max(0.0, begin + number * FRAME_S - time.monotonic()))
        connection.sendall(frame)


def main(argv: list[str]) -> None:
    """Send the sound until SIGTERM. Exit with a message if Icecast closes the connection."""
    file, kbps, address, port, mount, password_file = argv

    def stop(_number: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    connection = _begin(address, int(port), mount, Path(password_file).read_text(encoding="ascii").strip())
    print("source: connected", flush=True)
    try:
        _play(connection, Path(file).read_bytes(), int(kbps))
    except OSError as error:
        sys.exit(f"source: Icecast has ended the connection: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
