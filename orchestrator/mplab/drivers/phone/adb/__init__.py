"""Open phones that a lab file describes and that adb controls, over USB or TCP."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from mplab.drivers.phone.adb.phone import AdbPhone, AdbSettings
from mplab.drivers.phone.adb.server import AdbServer, default_home, user_keys
from mplab.drivers.phone.settings import AdbPhoneFile, AndroidPhoneFile

__all__ = ["AdbPhone", "AdbServer", "AdbSettings", "adb_server", "open_phone", "settings_of"]


def settings_of(file: AndroidPhoneFile) -> AdbSettings:
    """Return the adb settings of a phone from `file`, its entry in the lab file.

    Only a real phone (`AdbPhoneFile`) has a serial and interface names; for other phones, both are empty.
    """
    root = file.root or "auto"
    if not isinstance(file, AdbPhoneFile):
        return AdbSettings(root=root)
    named = file.interfaces.model_dump(exclude_none=True) if file.interfaces is not None else {}
    return AdbSettings(serial=file.serial or "", interfaces=named, root=root)


@contextlib.contextmanager
def adb_server(home: Path | None = None) -> Iterator[AdbServer]:
    """Run an adb server during the context. It authenticates to phones with its own key or the user's adb key.

    Args:
        home: folder of the server's key; default: `default_home`.

    Raises:
        LabNotReadyError, DeviceError: the server cannot be started.
    """
    with AdbServer(home or default_home(), keys=user_keys()) as server:
        yield server


@contextlib.contextmanager
def open_phone(name: str, file: AdbPhoneFile) -> Iterator[AdbPhone]:
    """Open a phone with a separate adb server for the duration of the context.

    Args:
        name: name of the phone in the lab.
        file: entry of the phone in the lab file.

    Raises:
        LabNotReadyError, DeviceError: the phone cannot be used; the message states the reason.
    """
    with adb_server() as server, AdbPhone(name, server, settings_of(file)) as phone:
        yield phone
