"""The radio station's source: MP3 from ffmpeg, at the pace of the sound, to Icecast.

``python source.py FFMPEG FILE ADDRESS PORT MOUNT PASSWORD_FILE``; runs until SIGTERM. ffmpeg could speak to Icecast
itself, but takes the password from its command line alone, and prints it.
"""

import base64
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

_CONNECT_TIMEOUT_S = 10.0
_RETRY_S = 0.05
_BLOCK = 4096


def _connect(address: str, port: int, deadline: float) -> socket.socket:
    """Icecast may still be starting."""
    while True:
        try:
            return socket.create_connection((address, port), timeout=_CONNECT_TIMEOUT_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)


def _begin(address: str, port: int, mount: str, password: str) -> socket.socket:
    """Send the head of the request and read Icecast's consent."""
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


def main(argv: list[str]) -> None:
    """Relay until told to stop; ends with an error when ffmpeg or Icecast does."""
    ffmpeg, file, address, port, mount, password_file = argv
    connection = _begin(address, int(port), mount, Path(password_file).read_text(encoding="ascii").strip())
    print("source: connected", flush=True)
    command = [ffmpeg, "-v", "warning", "-nostdin", "-re", "-stream_loop", "-1", "-i", file, "-c", "copy"]
    command += ["-write_xing", "0", "-id3v2_version", "0", "-flush_packets", "1", "-f", "mp3", "pipe:1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as encoder:

        def stop(_number: int, _frame: FrameType | None) -> None:
            encoder.kill()
            sys.exit(0)

        signal.signal(signal.SIGTERM, stop)
        assert encoder.stdout is not None  # noqa: S101 - PIPE was asked for
        try:
            while block := encoder.stdout.read1(_BLOCK):  # type: ignore[attr-defined]
                connection.sendall(block)
        except OSError as error:
            encoder.kill()
            sys.exit(f"source: Icecast has ended the connection: {error}")
    sys.exit(f"source: ffmpeg has ended ({encoder.returncode})")


if __name__ == "__main__":
    main(sys.argv[1:])
