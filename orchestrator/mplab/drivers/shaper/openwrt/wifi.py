"""Change a router's WiFi by uci: on and off, channel, transmit power, SSID."""

from mplab.drivers.shaper.openwrt.settings import RadioFile
from mplab.drivers.shaper.tc.shell import quote


def switch_radio(radio: RadioFile) -> tuple[str, str]:
    """Return two shell scripts: one that undoes the change, and one that makes it.

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
