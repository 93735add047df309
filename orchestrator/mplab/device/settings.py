"""How an emulated device is started."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Trust = Literal["any", "listed", "nobody"]


@dataclass(frozen=True)
class DeviceSettings:
    """What `Device` is made from.

    Attributes:
        phone: name of a phone that comes with mplab, or a phone file.
        host: address that adb connects to.
        port: 0 for a free one. Not 5555…5585, where every adb server looks for Android's own emulator.
        serial: instead of the phone's own; "" keeps that.
        trust: ``any``: its user accepts every host's key; ``listed``: only `keys`; ``nobody``: it stays unauthorized.
        keys: lines of ``adbkey.pub``.
        network_pid: a process in whose network namespace it lives; None: a namespace of its own.
        apps: the scripted apps are on it.
        app_files: further scripted apps; one of a package that is there already replaces it.
        app_variables: instead of the first values of the apps' variables: where their servers are.
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

    def to_json(self) -> dict[str, object]:
        """For the device's process."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "DeviceSettings":
        """What `to_json` gave."""
        lists = {name: tuple(data.get(name, ())) for name in ("keys", "app_files")}
        variables = tuple((name, value) for name, value in data.get("app_variables", ()))
        return cls(**{**data, **lists, "app_variables": variables})
