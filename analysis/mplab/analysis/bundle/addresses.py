"""Replace the addresses in text and captures with ``mptrace anonymise`` (docs/mptrace.md)."""

import secrets
import subprocess
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mplab.analysis.errors import BundleError
from mplab.analysis.record.decode import find_mptrace

KEY_BYTES: Final = 80
MAC_BYTES: Final = 6


class Addresses:
    """Replaces addresses in text and in captures with ``mptrace anonymise``.

    With the same key, an address gets the same replacement in text and in captures.
    This is a context manager; mptrace ends when the block is left.

    Args:
        key: secret of `KEY_BYTES` bytes; by default, a random one that is not stored.
        mptrace: path of the program; None: see `mplab.analysis.record.decode.find_mptrace`.

    Raises:
        ProgramMissingError: ``mptrace`` is missing.
    """

    def __init__(self, key: bytes = b"", mptrace: Path | None = None) -> None:
        self.replaced: dict[bytes, bytes] = {}
        """Old → new address, for all addresses that changed; each has 4 (IPv4), 16 (IPv6) or 6 bytes (MAC)."""
        self._known: dict[bytes, bytes] = {}
        self._command = (str(find_mptrace(mptrace)), "anonymise", "--key", "-")
        self._key_line = f"{(key or secrets.token_bytes(KEY_BYTES)).hex()}\n"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End mptrace."""
        if self._process is not None:
            self._process.communicate()

    def __call__(self, address: bytes) -> bytes:
        """Return the replacement of an address of 4 (IPv4), 16 (IPv6) or 6 bytes (MAC).

        Addresses that belong to no real network are kept, e.g. those of loopback, multicast and the virtual lab.

        Raises:
            BundleError: mptrace has ended.
        """
        new = self._known.get(address)
        if new is None:
            new = self._known[address] = _packed(self._answer(_text(address)))
            if new != address:
                self.replaced[address] = new
        return new

    def rewrite(self, source: Path, target: Path) -> bool:
        """Write a copy of a capture with replaced addresses and without payload; return whether the source is complete.

        If the source is cut off or damaged, only the packets before the damage are written.

        Raises:
            BundleError: the source is no pcapng file or has a link type whose addresses are not known, or the target
                cannot be written.
        """
        source = source.absolute()
        result = subprocess.run(
            (*self._command, "--mapping", "--output", str(target.absolute()), str(source)),
            input=self._key_line,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if result.returncode not in {0, 1}:
            problem = result.stderr.strip().removeprefix(f"mptrace: {source}: ")
            raise BundleError(problem or f"mptrace ended with exit code {result.returncode}")
        for line in result.stdout.splitlines():
            old, new = map(_packed, line.split())
            self.replaced[old] = new
        return result.returncode == 0

    def _answer(self, text: str) -> str:
        """Send an address to mptrace, which the first call starts, and return the replacement that mptrace prints."""
        try:
            if self._process is None:
                command = (*self._command, "--addresses")
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self._send(self._key_line)
            self._send(f"{text}\n")
            answer = self._process.stdout.readline() if self._process.stdout else ""
        except OSError:
            answer = ""
        if not answer:
            raise BundleError(f"mptrace does not replace the address {text}")
        return answer.strip()

    def _send(self, line: str) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(line)
            self._process.stdin.flush()


def _text(address: bytes) -> str:
    return address.hex(":") if len(address) == MAC_BYTES else str(ip_address(address))


def _packed(text: str) -> bytes:
    if text.count(":") == MAC_BYTES - 1 and "::" not in text:
        return bytes.fromhex(text.replace(":", ""))
    return ip_address(text).packed
