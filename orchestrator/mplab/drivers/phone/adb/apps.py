"""The apps of a phone: which versions, installed, cleared, allowed, ended."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.phone import AdbPhone

STORE = "com.android.vending"
"""Google Play, which updates apps by itself."""

_INSTALL_TIMEOUT_S = 180.0
_VERSION = re.compile(r"^\s*versionName=(.*)$", re.MULTILINE)
_CHOSEN = re.compile(r"^\s*User 0:.*\benabled=1\b", re.MULTILINE)
"""``COMPONENT_ENABLED_STATE_ENABLED``: enabled by a command, not by its manifest."""
_GRANTED = re.compile(r"^\s*([\w.]+): granted=true", re.MULTILINE)


class Apps:
    """Of one phone."""

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone

    def version(self, package: str) -> str:
        """``versionName``; "" when the app is not there. Raises DeviceError."""
        name = shlex.quote(package)
        text = self._phone.link.run(f"pm path {name} >/dev/null && dumpsys package {name}").stdout
        found = _VERSION.search(text.decode(errors="replace"))
        return found[1].strip() if found else ""

    def versions(self, packages: Mapping[str, str]) -> dict[str, str]:
        """Package → version that is there."""
        return {package: self.version(package) for package in packages}

    def install(self, apk: Path) -> None:
        """Install an app, or another version of it, with all its permissions granted. Raises DeviceError."""
        target = f"/data/local/tmp/{apk.name}"
        self._phone.push(apk, target)
        try:
            self._told(
                f"pm install -r -d -g {shlex.quote(target)}", f"{apk.name} was not installed", good="Success",
                timeout_s=_INSTALL_TIMEOUT_S,
            )  # fmt: skip
        finally:
            self._phone.script(f"rm -f {shlex.quote(target)}", check=False)

    def clear(self, package: str) -> None:
        """Forget what it has stored. Raises DeviceError."""
        self._told(f"pm clear {shlex.quote(package)}", f"{package} was not cleared", good="Success")

    def grant(self, package: str, *permissions: str) -> None:
        """Allow it something: ``android.permission.CAMERA``. Raises DeviceError."""
        for permission in permissions:
            command = f"pm grant {shlex.quote(package)} {shlex.quote(permission)}"
            self._told(command, f"{package} was not granted {permission}")

    def force_stop(self, package: str) -> None:
        """End it. Raises DeviceError."""
        self._told(f"am force-stop {shlex.quote(package)}", f"{package} was not ended")

    def provide(self, package: str, apk: Path | None, grant: Sequence[str] = ()) -> None:
        """Have an app there, and allowed what it needs, until the phone is given back. One that is there already is
        not replaced: which version it must have, the readiness gate asks.

        Args:
            package: its name.
            apk: what it is installed from, when it is not there; None: it has to be.
            grant: permissions, ``android.permission.CAMERA``.

        Raises:
            LabNotReadyError: it is not there, and there is no such file, or that of another app.
            DeviceError: the phone did not do it.
        """
        label, name = self._phone.label, shlex.quote(package)
        there, before = self._packages(), f"pm path {name} >/dev/null || exit 0; "
        if package not in there:
            if apk is None or not apk.is_file():
                what = f"there is no file {apk}" if apk is not None else "the lab file names no 'apk'"
                raise LabNotReadyError(f"{label}: {package} is not installed, and {what}")
            self._phone.register(f"{label}: {package} is installed", f"{before}pm uninstall {name}")
            self.install(apk)
            others = self._packages() - there - {package}
            for other in others:
                self._told(f"pm uninstall {shlex.quote(other)}", f"{other} was not uninstalled", good="Success")
            if others:
                raise LabNotReadyError(f"{label}: {apk} is the app {', '.join(sorted(others))}, not {package}")
        allowed = self._allowed(package)
        for permission in grant:
            if package in there and permission not in allowed:
                back = f"{before}pm revoke {name} {shlex.quote(permission)}"
                self._phone.register(f"{label}: {package} is allowed {permission}", back)
            self.grant(package, permission)

    def _packages(self) -> set[str]:
        said = self._phone.script("pm list packages").stdout
        return {line.removeprefix("package:").strip() for line in said.splitlines() if line.startswith("package:")}

    def _allowed(self, package: str) -> set[str]:
        """The permissions that it has been granted while it ran."""
        return set(_GRANTED.findall(self._phone.script(f"dumpsys package {shlex.quote(package)}").stdout))

    def stop_updates(self) -> bool:
        """Switch Google Play off, until the phone is given back; False when it is not there or off already.

        Raises:
            DeviceError: it cannot be switched off.
        """
        listed = self._phone.script(f"pm list packages -e {STORE}", check=False).stdout.split()
        if f"package:{STORE}" not in listed:
            return False
        text = self._phone.script(f"dumpsys package {STORE}").stdout
        back = "enable" if _CHOSEN.search(text) else "default-state"
        self._phone.register(f"{self._phone.label}: Google Play", f"pm {back} --user 0 {STORE}")
        self._told(f"pm disable-user --user 0 {STORE}", "Google Play was not switched off", good="disabled")
        return True

    def _told(self, command: str, problem: str, *, good: str = "", timeout_s: float = 60.0) -> None:
        done = self._phone.script(command, check=False, timeout_s=timeout_s)
        said = (done.stdout + done.stderr).strip()
        if done.exit_code != 0 or good not in said or said.startswith("Error"):
            self._phone.check_root(done.exit_code)
            raise DeviceError(
                self._phone.label, problem, command=(command,), exit_code_found=done.exit_code, stderr=said
            )
