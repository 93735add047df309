"""Define the settings of an emulated device."""

from dataclasses import dataclass
from typing import Literal

Trust = Literal["any", "listed", "nobody"]


@dataclass(frozen=True)
class DeviceSettings:
    """The settings of a `Device`.

    Attributes:
        phone: name of a phone that comes with mplab, or a phone file.
        host: address on which adbd listens.
        port: TCP port; 0: any free one. Not 5555…5585, where every adb server searches for Android's own emulator.
        serial: serial number that replaces the phone's own; "": keep that.
        trust: ``any``: its user accepts every host's key; ``listed``: only `keys`; ``nobody``: it stays unauthorized.
        keys: lines of ``adbkey.pub``.
        network_pid: process whose network namespace the device uses; None: its own namespace.
        apps: install the scripted apps.
        app_files: further scripted apps; an app replaces an installed one of the same package.
        app_variables: pairs of the name of an app's variable and a value that replaces its initial one, such as a
            server's address.
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
