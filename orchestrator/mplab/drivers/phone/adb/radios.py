"""Control the radios of a phone: on and off, network generations (2G to 5G), WiFi and cellular at the same time."""

import re
from typing import Literal

from mplab.base.errors import DeviceError
from mplab.base.paths import INTERFACES
from mplab.base.polling import wait_until
from mplab.drivers.phone.adb.phone import AdbPhone

Generation = Literal["2g", "3g", "4g", "5g"]
GENERATIONS: tuple[Generation, ...] = ("2g", "3g", "4g", "5g")

UP_TIMEOUT_S = 45.0
_POLL_S = 0.2

# ``NETWORK_TYPE_*`` of android.telephony.TelephonyManager, by the names that ``cmd phone`` prints: bit = number - 1.
_TYPES = {
    "GPRS": 1, "EDGE": 2, "UMTS": 3, "CDMA": 4, "CDMA - EvDo rev. 0": 5, "CDMA - EvDo rev. A": 6, "CDMA - 1xRTT": 7,
    "HSDPA": 8, "HSUPA": 9, "HSPA": 10, "iDEN": 11, "CDMA - EvDo rev. B": 12, "LTE": 13, "CDMA - eHRPD": 14,
    "HSPA+": 15, "GSM": 16, "TD_SCDMA": 17, "IWLAN": 18, "LTE_CA": 19, "NR": 20,
}  # fmt: skip
_OF_GENERATION: dict[Generation, tuple[str, ...]] = {
    "2g": ("GPRS", "EDGE", "CDMA", "CDMA - 1xRTT", "GSM"),
    "3g": (
        *("UMTS", "HSDPA", "HSUPA", "HSPA", "HSPA+", "TD_SCDMA"),
        *("CDMA - EvDo rev. 0", "CDMA - EvDo rev. A", "CDMA - EvDo rev. B", "CDMA - eHRPD"),
    ),
    "4g": ("LTE", "LTE_CA"),
    "5g": ("NR",),
}
# ``PREFERRED_NETWORK_MODE`` of RILConstants, for Android before 12: (up to a generation, only that generation).
_MODES: dict[Generation, tuple[int, int]] = {"2g": (1, 1), "3g": (0, 2), "4g": (9, 11), "5g": (26, 23)}
_FIRST_ALLOWED_SDK = 31


class Radios:
    """Radios of one phone; all changes are undone when the phone is released."""

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone

    def both_up(self, timeout_s: float = UP_TIMEOUT_S) -> None:
        """Bring up WiFi and mobile data at the same time.

        By default, Android disconnects mobile data while WiFi is connected; this method changes that setting.

        Raises:
            DeviceError: an interface got no address in time.
        """
        self._phone.put_setting("mobile_data_always_on", "1")
        self.switch("wifi", on=True)
        self.switch("data", on=True)
        self.wait_up(*INTERFACES, timeout_s=timeout_s)

    def switch(self, radio: Literal["wifi", "data"], *, on: bool) -> None:
        """Switch WiFi or mobile data on or off. Raises DeviceError when the phone is lost or a command fails."""
        key = {"wifi": "wifi_on", "data": "mobile_data"}[radio]
        # WiFi is 2 while it is on in airplane mode, 3 while airplane mode has switched it off.
        was = self._read(key) in {"1", "2"}
        if was == on:
            return
        before = "enable" if was else "disable"
        self._phone.register(f"{self._phone.label}: {radio} {before}d", f"svc {radio} {before}")
        self._phone.script(f"svc {radio} {'enable' if on else 'disable'}")

    def wait_up(self, *paths: str, timeout_s: float = UP_TIMEOUT_S) -> None:
        """Wait until paths (``wifi``, ``lte``) have addresses. Raises DeviceError after `timeout_s`."""
        missing = list(paths)

        def up() -> bool:
            self._phone.refresh()
            missing[:] = [path for path in paths if INTERFACES[path] not in self._phone.interfaces]
            return not missing

        if not wait_until(up, timeout_s, interval_s=_POLL_S):
            words = " and ".join(missing)
            raise DeviceError(self._phone.label, f"{words}: no address within {timeout_s:g} s: is there a network?")

    def set_generation(self, generation: Generation, *, only: bool = False, slot: int = 0) -> None:
        """Set the network generations that the modem may use: `generation` and all older ones, or only `generation`.

        Args:
            generation: ``2g``, ``3g``, ``4g`` or ``5g``.
            only: exclude the older generations.
            slot: slot of the SIM, from 0.

        Raises:
            DeviceError: the phone did not apply the setting.
        """
        if self._sdk() < _FIRST_ALLOWED_SDK:
            self._phone.put_setting(f"preferred_network_mode{slot or ''}", str(_MODES[generation][only]))
            return
        before = self.allowed(slot)
        wanted = type_bits(generation, only=only)
        command = f"cmd phone set-allowed-network-types-for-users -s {slot}"
        self._phone.register(f"{self._phone.label}: allowed network types", f"{command} {before:b}")
        self._phone.script(f"{command} {wanted:b}")
        if (current := self.allowed(slot)) != wanted:
            raise DeviceError(self._phone.label, f"{generation}: network types {wanted:b} requested, {current:b} set")

    def allowed(self, slot: int = 0) -> int:
        """Return the network types that the modem may use, as a bit mask.

        Bit n - 1 is set for the type whose constant ``NETWORK_TYPE_*`` of Android is n.

        Raises:
            DeviceError: the phone's answer cannot be parsed.
        """
        output = self._phone.script(f"cmd phone get-allowed-network-types-for-users -s {slot}").stdout.strip()
        bits = parse_types(output)
        if not bits:
            raise DeviceError(self._phone.label, f"allowed network types {output!r}: not understood")
        return bits

    def _sdk(self) -> int:
        output = self._phone.link.run("getprop ro.build.version.sdk").stdout.strip()
        return int(output) if output.isdigit() else 0

    def _read(self, key: str) -> str:
        return self._phone.script(f"settings get global {key}").stdout.strip()


def type_bits(generation: Generation, *, only: bool = False) -> int:
    """Return the bits of the network types of a generation and, unless `only`, of all older generations."""
    last = GENERATIONS.index(generation)
    chosen = GENERATIONS[last : last + 1] if only else GENERATIONS[: last + 1]
    return sum(1 << (_TYPES[name] - 1) for included in chosen for name in _OF_GENERATION[included])


def parse_types(text: str) -> int:
    """Parse network types, written as ``GPRS|EDGE|LTE|NR`` or as binary digits, into bits; return 0 for other text."""
    text = text.strip()
    if re.fullmatch(r"[01]+", text):
        return int(text, 2)
    names = [name.strip() for name in text.split("|")]
    return sum(1 << (_TYPES[name] - 1) for name in set(names)) if all(name in _TYPES for name in names) else 0
