"""Copy files by the phone's shell: ``adb push`` and ``adb pull`` cannot reach files that only root may read."""

import shlex
from collections.abc import Callable
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.files import replace
from mplab.drivers.phone.adb.link import Link

_TIMEOUT_S = 120.0
_NONE_THERE = 44


class PhoneFiles:
    """Copies files to and from one phone.

    Args:
        link: connection to the phone.
        as_root: returns its argument, a command line, changed so that it runs as root; unchanged without root.
        folder: folder on the phone for this run.
        check_root: called with the exit code of a failed command; raises DeviceError when root was withdrawn.
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
        """Write `text` to a private file on the phone and return its path.

        Only root can read the file; without root, only adb's shell user can.

        Raises:
            DeviceError: the file could not be written.
        """
        path = f"{self._folder}/private/{name}"
        quoted = shlex.quote(path)
        self._do(f"umask 077; mkdir -p {self._folder}/private && cat > {quoted}", path, stdin=text.encode())
        return path

    def push(self, source: Path, target: str, *, as_root: bool = True) -> None:
        """Copy a host file to the phone. Raises DeviceError when the copy fails."""
        self._do(f"cat > {shlex.quote(target)}", target, stdin=source.read_bytes(), as_root=as_root)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from the phone to the host. Raises DeviceError when the copy fails."""
        _write(target, self._do(f"cat {shlex.quote(source)}", source))

    def outbox(self, target: Path, *, busy: bool) -> str:
        """Return a new path on the phone for a file that a program will write; `bring` copies this file to `target`.

        The files that `bring` has already copied are first deleted, because storage on a phone is small. They are kept
        if `busy`, that is, if a program may still write.
        """
        if self._brought and not busy:
            self._link.run(self._as_root(f"rm -f {shlex.join(sorted(self._brought))}"))
            self._brought.clear()
        self._last_box += 1
        self._outbox[target] = path = f"{self._folder}/out/{self._last_box}-{target.name}"
        return path

    def bring(self, target: Path) -> None:
        """Copy the file at the `outbox` path of `target` to the host file `target`; do nothing if the file is missing.

        A file that a program still writes is copied as it is now.

        Raises:
            DeviceError: the copy failed.
        """
        source = self._outbox.get(target)
        if source is None:
            return
        quoted = shlex.quote(source)
        result = self._link.run(
            self._as_root(f"test -e {quoted} || exit {_NONE_THERE}; cat {quoted}"), timeout_s=_TIMEOUT_S
        )
        if result.exit_code == _NONE_THERE:
            return
        self._arrived(result.exit_code, result.stderr, source)
        _write(target, result.stdout)
        self._brought.add(source)

    def _do(self, command: str, path: str, *, stdin: bytes = b"", as_root: bool = True) -> bytes:
        line = self._as_root(command) if as_root else command
        result = self._link.run(line, stdin=stdin, timeout_s=_TIMEOUT_S)
        self._arrived(result.exit_code, result.stderr, path)
        return result.stdout

    def _arrived(self, exit_code: int, stderr: bytes, path: str) -> None:
        if exit_code != 0:
            self._check_root(exit_code)
            text = stderr.decode(errors="replace")
            raise DeviceError(self._link.label, f"{path} could not be copied", exit_code_found=exit_code, stderr=text)


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    replace(target, data)
