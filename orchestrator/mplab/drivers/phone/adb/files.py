"""Files on the phone, copied by its shell: adb's own way of copying does not reach where root alone may."""

import shlex
from collections.abc import Callable
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.files import replace
from mplab.drivers.phone.adb.link import Link

_TIMEOUT_S = 120.0
_NONE_THERE = 44


class PhoneFiles:
    """Of one phone.

    Args:
        link: to the phone.
        as_root: makes a command line one of root, where there is root.
        folder: on the phone, for this time of its.
        check_root: is given the exit code of what failed; raises DeviceError when root was withdrawn.
    """

    def __init__(
        self, link: Link, *, as_root: Callable[[str], str], folder: str, check_root: Callable[[int], object]
    ) -> None:
        self._link = link
        self._as_root = as_root
        self._folder = folder
        self._check_root = check_root
        self._outbox: dict[Path, str] = {}
        self._brought: set[str] = set()
        self._last_box = 0

    def keep(self, name: str, text: str) -> str:
        """Write a file that root alone can read; without root, adb's shell alone; its path. Raises DeviceError."""
        path = f"{self._folder}/private/{name}"
        quoted = shlex.quote(path)
        self._do(f"umask 077; mkdir -p {self._folder}/private && cat > {quoted}", path, stdin=text.encode())
        return path

    def push(self, source: Path, target: str, *, as_root: bool = True) -> None:
        """Copy a host file there. Raises DeviceError."""
        self._do(f"cat > {shlex.quote(target)}", target, stdin=source.read_bytes(), as_root=as_root)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from there. Raises DeviceError."""
        _write(target, self._do(f"cat {shlex.quote(source)}", source))

    def outbox(self, target: Path, *, busy: bool) -> str:
        """A new file for what becomes `target`. Unless `busy`, those that were brought go: a phone has little room."""
        if self._brought and not busy:
            self._link.run(self._as_root(f"rm -f {shlex.join(sorted(self._brought))}"))
            self._brought.clear()
        self._last_box += 1
        self._outbox[target] = path = f"{self._folder}/out/{self._last_box}-{target.name}"
        return path

    def bring(self, target: Path) -> None:
        """Make the host file what its outbox holds now; nothing when there is none. Raises DeviceError."""
        source = self._outbox.get(target)
        if source is None:
            return
        quoted = shlex.quote(source)
        done = self._link.run(
            self._as_root(f"test -e {quoted} || exit {_NONE_THERE}; cat {quoted}"), timeout_s=_TIMEOUT_S
        )
        if done.exit_code == _NONE_THERE:
            return
        self._arrived(done.exit_code, done.stderr, source)
        _write(target, done.stdout)
        self._brought.add(source)

    def _do(self, command: str, path: str, *, stdin: bytes = b"", as_root: bool = True) -> bytes:
        line = self._as_root(command) if as_root else command
        done = self._link.run(line, stdin=stdin, timeout_s=_TIMEOUT_S)
        self._arrived(done.exit_code, done.stderr, path)
        return done.stdout

    def _arrived(self, exit_code: int, stderr: bytes, path: str) -> None:
        if exit_code != 0:
            self._check_root(exit_code)
            text = stderr.decode(errors="replace")
            raise DeviceError(self._link.label, f"{path} could not be copied", exit_code_found=exit_code, stderr=text)


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    replace(target, data)
