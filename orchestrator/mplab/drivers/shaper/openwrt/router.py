"""Hold an OpenWrt router during a run, so that no other process can shape it.

While the router is held, flow offload is disabled. The run can set the router's WiFi and reboot the router.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import ClassVar

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.polling import wait_until
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.driver import RadioFile, RouterFile
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.machine import TcMachine
from mplab.drivers.shaper.tc.shell import MachineError, quote
from mplab.drivers.shaper.tc.ssh import SshConnection

_REBOOT_TIMEOUT_S = 180.0
_REBOOT_POLL_S = 0.5
_OFFLOAD = "firewall.@defaults[0]."
_UNDO_OFFLOAD, _UNDO_RADIO = "40-offload", "30-radio"
"""Names of undo scripts. They run in descending order of names, so these run after the one that removes all shaping."""


class Router(TcMachine):
    """OpenWrt router that this process holds during the context: no other process can shape it.

    Args:
        name: name in the lab file.
        settings: entry in the lab file.
        interfaces: interfaces of the router to shape; default: the one in `settings`.
        owner: run or user that holds the router.
    """

    openwrt: ClassVar[bool] = True
    state_directory: ClassVar[str] = guard.STATE
    watches_itself: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        settings: RouterFile,
        *,
        owner: Owner,
        interfaces: Sequence[str] = (),
    ) -> None:
        self.settings = settings
        self._ssh = SshConnection(f"router {name}", settings)
        super().__init__(
            self._ssh.name,
            self._ssh,
            interface=settings.interface,
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(self._ssh.name, "openwrt", settings),
            owner=owner,
        )

    def _check_ready(self) -> None:
        guard.require(self._ssh)

    def _prepare_held(self) -> None:
        self._switch_offloads_off()  # at all interfaces, because GRO joins forwarded packets where they are received
        if self.found.offloads:
            self._switch_offload_off()
        if self.settings.radio is not None:
            self.set_radio(self.settings.radio)

    def _switch_offload_off(self) -> None:
        options = ", ".join(self.found.offloads)
        if self.settings.flow_offload == "refuse":
            raise LabNotReadyError(
                f"{self.name}: {options} of its firewall lets packets bypass the queues. Switch it off on the router, "
                "or set 'flow_offload: switch-off' in the lab file"
            )
        self._refuse_staged("firewall")
        names = [f"{_OFFLOAD}{option}" for option in self.found.offloads]
        undo = [*(f"uci revert {quote(name)}" for name in names), "/etc/init.d/firewall reload >/dev/null 2>&1\n"]
        script = [self.hold.note_undo(_UNDO_OFFLOAD, "\n".join(undo))]
        script += [f"uci set {quote(f'{name}=0')} || return 1" for name in names]
        self.hold.change("\n".join([*script, "/etc/init.d/firewall reload >/dev/null 2>&1"]), "switching offload off")

    def _refuse_staged(self, package: str) -> None:
        if staged := self._ssh.run(f"uci changes {package}", check=False).stdout.strip():
            raise LabNotReadyError(
                f"{self.name}: {package} has changes that are not committed ({staged.splitlines()[0]} …): "
                f"run 'uci commit {package}' or 'uci revert {package}' there"
            )

    def set_radio(self, radio: RadioFile) -> None:
        """Set the router's WiFi (on or off, channel, transmit power, SSID) until the router is released.

        The changes are not committed in uci: a reboot discards them.

        Raises:
            LabNotReadyError: uncommitted changes by another user exist.
            MachineError: the router refused, e.g. because the radio does not exist; all changes are undone.
        """
        if self._ssh.run(f"ls {self.state_directory}/undo.d | grep -q {_UNDO_RADIO}", check=False).exit_code != 0:
            self._refuse_staged("wireless")
        note, script = switch_radio(radio)
        file = f"{_UNDO_RADIO}-{radio.device}-{radio.network}"
        self.hold.change(f"{self.hold.note_undo(file, note)}\n{script}", f"WiFi {radio.device}")

    def reboot(self, timeout_s: float = _REBOOT_TIMEOUT_S) -> None:
        """Reboot the router, wait until it answers, and hold it again; afterwards, no path is shaped.

        Raises:
            LabNotReadyError: another owner has taken the router during the reboot, or its dead-man's switch is missing.
            MachineError: the router does not answer within `timeout_s`.
        """
        self.hold.stop_beating()
        self.shaping.forget()
        before = self.found.boot
        with contextlib.suppress(MachineError):  # the connection may end before the answer
            self._ssh.run("reboot", check=False)

        def back() -> bool:
            with contextlib.suppress(LabNotReadyError, DeviceError):
                self._ssh.connect()
                return self._ssh.run("cat /proc/sys/kernel/random/boot_id", timeout_s=5).stdout.strip() != before
            return False

        time.sleep(_REBOOT_POLL_S)
        if not wait_until(back, timeout_s, interval_s=_REBOOT_POLL_S):
            raise MachineError(self.name, f"not back within {timeout_s:g} s after a reboot")
        guard.require(self._ssh)
        self._take_again()


def switch_radio(radio: RadioFile) -> tuple[str, str]:
    """Return two shell scripts: the first restores the router's WiFi settings, the second applies those in `radio`.

    uci options are set but not committed. The network daemon (netifd) reads uncommitted options, too; a reboot
    discards them, and ``uci revert`` undoes them.
    """
    wanted = {
        f"wireless.{radio.device}.disabled": None if radio.enabled is None else str(int(not radio.enabled)),
        f"wireless.{radio.device}.channel": radio.channel,
        f"wireless.{radio.device}.txpower": radio.tx_power_dbm,
        f"wireless.{radio.network}.ssid": radio.ssid,
    }
    sections = {radio.device} | ({radio.network} if radio.ssid is not None else set())
    options = {option: value for option, value in wanted.items() if value is not None}
    undo = [f"uci -q revert {quote(option)}" for option in wanted]
    check = [
        f"uci -q get wireless.{section} >/dev/null || {{ echo 'no wireless.{section} in uci' >&2; return 1; }}"
        for section in sorted(sections)
    ]
    change = [f"uci set {quote(f'{option}={value}')} || return 1" for option, value in options.items()]
    reload = "wifi reload >/dev/null 2>&1"
    return "\n".join([*undo, f"{reload}\n"]), "\n".join([*check, *change, reload])
