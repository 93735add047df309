"""Read and parse the condition of a phone: battery, temperature, free space, screen, radios. Measure its clock offset.

One command on the phone reads all values of the condition; parsing has no side effects.
"""

import contextlib
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mplab.base.counters import parse_interfaces
from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.link import Link, asking, split_answers

_ASKED = {
    "battery": "dumpsys battery",
    "thermal": "dumpsys thermalservice",
    "df": "df -k /data",
    "power": "dumpsys power | grep -e mWakefulness= -e 'Display Power'",
    "keyguard": "dumpsys window policy | grep -i -e mShowingLockscreen -e showing= -e mIsShowing",
    "airplane": "settings get global airplane_mode_on",
    "sim": "getprop gsm.sim.state",
    "dev": "cat /proc/net/dev",
}
_SIM_READY = {"LOADED", "READY"}


@dataclass(frozen=True)
class Condition:
    """Battery, temperature, free space, screen and radios of a phone; None: the phone does not report the value."""

    battery_percent: int | None
    temperature_c: float | None
    """Temperature of the battery, °C."""
    plugged: bool | None
    thermal_status: int | None
    """``THERMAL_STATUS`` of Android 10 and later.

    0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown.
    """
    free_bytes: int | None
    """Free space in ``/data``."""
    awake: bool | None
    locked: bool | None
    airplane: bool | None
    sims: tuple[str, ...]
    """State of each SIM: ``LOADED``, ``ABSENT``, ``PIN_REQUIRED``."""
    traffic_bytes: Mapping[str, int]
    """Interface → bytes received and sent since boot."""

    @property
    def sim_ready(self) -> bool:
        """True when at least one SIM is ready."""
        return any(sim in _SIM_READY for sim in self.sims)


def read_condition(link: Link) -> Condition:
    """Read the condition of the phone by one command. Raises DeviceError when the phone is lost."""
    return parse_condition(split_answers(link.run(asking(_ASKED)).stdout.decode(errors="replace")))


def parse_condition(answers: Mapping[str, str]) -> Condition:
    """Parse the condition of a phone from `answers`: name of a command in `_ASKED` → output of the command.

    A value is None or empty if the output does not contain it.
    """
    battery = answers.get("battery", "")
    level, scale = _number(r"^\s*level: (\d+)", battery), _number(r"^\s*scale: (\d+)", battery)
    tenths = _number(r"^\s*temperature: (-?\d+)", battery)
    powered = re.findall(r"^\s*\w+ powered: (true|false)", battery, re.MULTILINE)
    free = re.search(r"\s(\d+)\s+\d+%", answers.get("df", ""))
    awake = re.search(r"mWakefulness=(\w+)", answers.get("power", ""))
    locked = re.findall(r"(?:mShowingLockscreen|showing|mIsShowing)=(true|false)", answers.get("keyguard", ""))
    airplane = answers.get("airplane", "").strip()
    return Condition(
        battery_percent=None if level is None else level * 100 // (scale or 100),
        temperature_c=None if tenths is None else tenths / 10,
        plugged="true" in powered if powered else None,
        thermal_status=_number(r"^Thermal Status: (\d+)", answers.get("thermal", "")),
        free_bytes=int(free[1]) * 1024 if free else None,
        awake=awake[1] == "Awake" if awake else None,
        locked="true" in locked if locked else None,
        airplane=airplane == "1" if airplane in {"0", "1"} else None,
        sims=tuple(sim for sim in answers.get("sim", "").strip().split(",") if sim),
        traffic_bytes=_traffic(answers.get("dev", "")),
    )


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text, re.MULTILINE)
    return int(match[1]) if match else None


def _traffic(text: str) -> dict[str, int]:
    counters: dict[str, int] = {}
    with contextlib.suppress(ValueError, IndexError):
        counters = parse_interfaces(text)
    names = [key.removesuffix(".rx_bytes") for key in counters if key.endswith(".rx_bytes")]
    return {name: counters[f"{name}.rx_bytes"] + counters[f"{name}.tx_bytes"] for name in names}


_READS = 7


@dataclass(frozen=True)
class ClockOffset:
    """Offset of the phone's clock from this host's clock.

    Attributes:
        offset_s: median, over the reads, of the phone's clock minus the host's, s.
        uncertainty_s: uncertainty of the offset: half of the median duration of a read, s.
        reads: number of reads.
    """

    offset_s: float
    uncertainty_s: float
    reads: int


def measure_clock(link: Link) -> ClockOffset:
    """Measure the offset of the phone's clock from several reads.

    Each read compares the phone's time with the mean of the host times before and after the read.

    Raises:
        DeviceError: the phone printed no time, or is lost.
    """
    offsets, times = [], []
    for _ in range(_READS):
        sent = time.time()
        output = link.run("date +%s.%N", timeout_s=10).stdout.decode(errors="replace").strip()
        answered = time.time()
        try:
            offsets.append(float(output) - (sent + answered) / 2)
        except ValueError:
            raise DeviceError(link.label, f"'date +%s.%N' printed {output!r}, which is no time") from None
        times.append(answered - sent)
    return ClockOffset(statistics.median(offsets), statistics.median(times) / 2, _READS)
