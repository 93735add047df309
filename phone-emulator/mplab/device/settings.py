"""Define the settings of an emulated device."""

from dataclasses import dataclass
from typing import Literal

Trust = Literal["any", "listed", "nobody"]


@dataclass(frozen=True)
class DeviceSettings:
    """The settings of a `Device`.

    Attributes:
        phone: name of a phone that comes with mplab, or path of a phone file.
        host: IP address on which adbd listens.
        port: TCP port of adbd; 0: any free port. It must not be 5555…5585, where every adb server searches for
            Android's own emulator.
        serial: serial number that replaces the one in the phone file; "": keep that one.
        trust: hosts that the device accepts. ``any``: its user accepts every host's key; ``listed``: only those in
            `keys`; ``nobody``: none, so that adb reports the device as unauthorized.
        keys: public keys of accepted hosts, each a line of ``adbkey.pub``.
        network_pid: id of a process whose network namespace the device uses; None: the device has its own namespace.
        apps: True: install the scripted apps that come with mplab, and those in `app_files`.
        app_files: files of further scripted apps. An app replaces another one that has the same package name.
        app_variables: pairs of an app variable's name and the value that replaces its initial one, such as a server's
            address.
    """

    phone: str = "android-13"
    host: str = "127.0.0.1"
    port: int = 0
    serial: str = ""
    trust: Trust = "any"
    keys: tuple[str, ...] = ()
    network_pid: int | None = None
    apps: bool = True
    app_files: tuple[str, ...] = ()
    app_variables: tuple[tuple[str, str], ...] = ()
