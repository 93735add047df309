"""Recover a phone that does not respond. The steps (rungs) go from a reconnection to a reboot."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from mplab.base.errors import CellError, DeviceError, LabNotReadyError
from mplab.base.polling import wait_until
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.adb.root import still_root

_log = structlog.get_logger(__name__)

_UI_AGENTS = (
    "am force-stop io.appium.uiautomator2.server.test; am force-stop io.appium.uiautomator2.server; "
    "for p in $(pgrep -f com.wetest.uia2.Main); do [ $p = $$ ] || kill -9 $p; done 2>/dev/null; true"
)
"""Script that stops the UI automation servers on the phone: those of Appium and uiautomator2.

Either driver starts its server again at the next session."""
_WHICH_BOOT = "cat /proc/sys/kernel/random/boot_id; getprop ro.runtime.firstboot"


@dataclass(frozen=True)
class Patience:
    """Maximum duration of each recovery step, seconds."""

    reconnect_s: float = 15.0
    transport_s: float = 45.0
    reboot_s: float = 240.0
    down_s: float = 30.0
    """Maximum time until the phone stops answering after the reboot command."""


@dataclass(frozen=True)
class PhoneRecovery:
    """Result of a successful recovery.

    Attributes:
        rung: name of the step after which the phone worked.
        tried: names of all steps up to and including `rung`: ``("reconnect", "ui agent")``.
    """

    rung: str
    tried: tuple[str, ...]


class Recovery:
    """Recovery of one phone.

    Args:
        phone: phone whose context has been entered.
        works: returns whether the phone works; called after each step, if the phone has booted and root works. It may
            raise CellError.
        patience: maximum durations of the steps.
    """

    def __init__(
        self, phone: AdbPhone, works: Callable[[], bool] = lambda: True, *, patience: Patience | None = None
    ) -> None:
        self._phone = phone
        self._works = works
        self._patience = patience or Patience()

    def recover(self, reason: str) -> PhoneRecovery:
        """Run the recovery steps in order until the phone works again; return the steps that were run.

        Args:
            reason: the original problem, for the quarantine entry if no step helps.

        Raises:
            LabNotReadyError: no step helped; the phone is in quarantine.
        """
        rungs: tuple[tuple[str, Callable[[], None]], ...] = (
            ("reconnect", self._reconnect),
            ("ui agent", self._restart_ui),
            ("transport", self._restart_transport),
            ("reboot", self._reboot),
        )
        tried: list[str] = []
        problem = reason
        for name, climb in rungs:
            tried.append(name)
            try:
                climb()
                problem = self._problem()
            except (CellError, LabNotReadyError) as error:
                problem = str(error)
            _log.info("recovery", phone=self._phone.label, rung=name, problem=problem)
            if not problem:
                return PhoneRecovery(name, tuple(tried))
        text = f"{reason}; tried: {', '.join(tried)}; last: {problem}"
        raise self._phone.quarantine.put(self._phone.serial, text).refusal(self._phone.label)

    def _problem(self) -> str:
        """Return the problem of the phone, or "" when it works. Raises as `Link.run` and `works` do."""
        link = self._phone.link
        if link.run("getprop sys.boot_completed", timeout_s=10).stdout.strip() != b"1":
            return "it has not booted"
        if not still_root(link, self._phone.root):
            return f"root was withdrawn ('{self._phone.root.value}' no longer works)"
        return "" if self._works() else "the check of its work failed"

    def _reconnect(self) -> None:
        self._phone.link.reconnect(self._patience.reconnect_s)

    def _restart_ui(self) -> None:
        self._phone.link.connect(1.0)
        self._phone.script(_UI_AGENTS, check=False)

    def _restart_transport(self) -> None:
        """Make adbd on this phone drop its connections; on a rooted phone, restart adbd.

        The connections of other phones to the same adb server stay open.
        """
        link = self._phone.link
        link.ask(f"host:transport:{link.serial}", "reconnect")
        if self._phone.rooted:
            with contextlib.suppress(DeviceError):
                link.run(self._phone.root.line("setprop ctl.restart adbd"), timeout_s=5)
        link.reconnect(self._patience.transport_s)
        link.wait_boot(self._patience.transport_s)
        self._phone.renew()

    def _reboot(self) -> None:
        link = self._phone.link
        link.connect(1.0)
        before = link.run(_WHICH_BOOT).stdout
        link.ask(f"host:transport:{link.serial}", "reboot:")
        if not wait_until(lambda: not self._answers(before), self._patience.down_s, interval_s=0.2):
            raise DeviceError(self._phone.label, f"did not go down within {self._patience.down_s:g} s to reboot")
        link.wait_boot(self._patience.reboot_s)
        self._phone.renew()

    def _answers(self, before: bytes) -> bool:
        """Return whether the phone answers and has not rebooted since its boot id was `before`."""
        try:
            output = self._phone.link.run(_WHICH_BOOT, timeout_s=5)
        except DeviceError:
            return False
        return output.stdout == before
