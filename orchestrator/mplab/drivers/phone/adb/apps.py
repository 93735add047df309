"""Install, stop and clear apps of a phone; grant their permissions, and read their versions."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.phone import AdbPhone

STORE = "com.android.vending"
"""Package of Google Play, which updates apps by itself."""

_INSTALL_TIMEOUT_S = 180.0
_VERSION = re.compile(r"^\s*versionName=(.*)$", re.MULTILINE)
_CHOSEN = re.compile(r"^\s*User 0:.*\benabled=1\b", re.MULTILINE)
"""``COMPONENT_ENABLED_STATE_ENABLED``: enabled by a command, not by the app's manifest."""
_GRANTED = re.compile(r"^\s*([\w.]+): granted=true", re.MULTILINE)


class Apps:
    """The apps of one phone: installation, versions, permissions and data."""

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone

    def version(self, package: str) -> str:
        """Return the app's ``versionName``; "" when it is not installed. Raises DeviceError when the phone is lost."""
        name = shlex.quote(package)
        text = self._phone.link.run(f"pm path {name} >/dev/null && dumpsys package {name}").stdout
        match = _VERSION.search(text.decode(errors="replace"))
        return match[1].strip() if match else ""

    def versions(self, packages: Mapping[str, str]) -> dict[str, str]:
        """Return package → installed version for the keys of `packages`; "" for a missing app. Raises DeviceError."""
        return {package: self.version(package) for package in packages}

    def install(self, apk: Path) -> None:
        """Install an app, or replace it by another version, and grant all its permissions.

        Raises:
            DeviceError: the package manager refused, or the phone is lost.
        """
        target = f"/data/local/tmp/{apk.name}"
        self._phone.push(apk, target)
        try:
            self._run_checked(
                f"pm install -r -d -g {shlex.quote(target)}", f"{apk.name} was not installed", good="Success",
                timeout_s=_INSTALL_TIMEOUT_S,
            )  # fmt: skip
        finally:
            self._phone.script(f"rm -f {shlex.quote(target)}", check=False)

    def clear(self, package: str) -> None:
        """Delete the app's stored data. Raises DeviceError when the phone refuses."""
        self._run_checked(f"pm clear {shlex.quote(package)}", f"{package} was not cleared", good="Success")

    def grant(self, package: str, *permissions: str) -> None:
        """Grant permissions to an app (``android.permission.CAMERA``). Raises DeviceError when the phone refuses."""
        for permission in permissions:
            command = f"pm grant {shlex.quote(package)} {shlex.quote(permission)}"
            self._run_checked(command, f"{package} was not granted {permission}")

    def force_stop(self, package: str) -> None:
        """Stop the app. Raises DeviceError when the phone refuses."""
        self._run_checked(f"am force-stop {shlex.quote(package)}", f"{package} was not ended")

    def provide(self, package: str, apk: Path | None, grant: Sequence[str] = ()) -> None:
        """Install an app and grant its permissions until the phone is released.

        An app that is already installed is kept; the readiness check verifies its version.

        Args:
            package: package name.
            apk: file to install when the app is missing; None: the app must be installed.
            grant: permissions, e.g. ``android.permission.CAMERA``.

        Raises:
            LabNotReadyError: the app is not installed, and `apk` is missing or contains another app.
            DeviceError: the phone refused a command.
        """
        label, name = self._phone.label, shlex.quote(package)
        installed, before = self._packages(), f"pm path {name} >/dev/null || exit 0; "
        if package not in installed:
            if apk is None or not apk.is_file():
                problem = f"there is no file {apk}" if apk is not None else "the lab file names no 'apk'"
                raise LabNotReadyError(f"{label}: {package} is not installed, and {problem}")
            self._phone.register(f"{label}: {package} is installed", f"{before}pm uninstall {name}")
            self.install(apk)
            others = self._packages() - installed - {package}
            for other in others:
                self._run_checked(f"pm uninstall {shlex.quote(other)}", f"{other} was not uninstalled", good="Success")
            if others:
                raise LabNotReadyError(f"{label}: {apk} is the app {', '.join(sorted(others))}, not {package}")
        allowed = self._allowed(package)
        for permission in grant:
            if package in installed and permission not in allowed:
                back = f"{before}pm revoke {name} {shlex.quote(permission)}"
                self._phone.register(f"{label}: {package} is allowed {permission}", back)
            self.grant(package, permission)

    def _packages(self) -> set[str]:
        listing = self._phone.script("pm list packages").stdout
        return {line.removeprefix("package:").strip() for line in listing.splitlines() if line.startswith("package:")}

    def _allowed(self, package: str) -> set[str]:
        """Return the permissions that Android has granted to the app `package`."""
        return set(_GRANTED.findall(self._phone.script(f"dumpsys package {shlex.quote(package)}").stdout))

    def stop_updates(self) -> bool:
        """Disable Google Play, which updates apps by itself, until the phone is released.

        Returns:
            False when Google Play is missing or was already disabled.

        Raises:
            DeviceError: Google Play cannot be disabled.
        """
        listed = self._phone.script(f"pm list packages -e {STORE}", check=False).stdout.split()
        if f"package:{STORE}" not in listed:
            return False
        text = self._phone.script(f"dumpsys package {STORE}").stdout
        back = "enable" if _CHOSEN.search(text) else "default-state"
        self._phone.register(f"{self._phone.label}: Google Play", f"pm {back} --user 0 {STORE}")
        self._run_checked(f"pm disable-user --user 0 {STORE}", "Google Play was not switched off", good="disabled")
        return True

    def _run_checked(self, command: str, problem: str, *, good: str = "", timeout_s: float = 60.0) -> None:
        result = self._phone.script(command, check=False, timeout_s=timeout_s)
        output = (result.stdout + result.stderr).strip()
        if result.exit_code != 0 or good not in output or output.startswith("Error"):
            self._phone.check_root(result.exit_code)
            raise DeviceError(
                self._phone.label, problem, command=(command,), exit_code_found=result.exit_code, stderr=output
            )
