"""The phone's Multipath TCP settings from before a run are restored, line by line."""

from mplab.drivers.phone.adb.kernel import undo_script

SHOWN = """\
enabled:0
blackhole_timeout:3600
add_addr_accepted 0 subflows 2
10.64.1.2 id 1 subflow dev wlan0
10.64.2.2 id 2 subflow backup dev rmnet_data0
fd00::2 id 3 signal dev wlan0
"""


def test_everything_that_was_there_is_brought_back() -> None:
    assert undo_script(SHOWN).splitlines() == [
        "ip mptcp endpoint flush",
        "echo 0 > /proc/sys/net/mptcp/enabled",
        "echo 3600 > /proc/sys/net/mptcp/blackhole_timeout",
        "ip mptcp limits set subflow 2 add_addr_accepted 0",
        "ip mptcp endpoint add 10.64.1.2 id 1 subflow dev wlan0",
        "ip mptcp endpoint add 10.64.2.2 id 2 subflow backup dev rmnet_data0",
        "ip mptcp endpoint add fd00::2 id 3 signal dev wlan0",
    ]


def test_what_is_not_understood_is_no_command() -> None:
    assert undo_script("$(reboot) id 1 subflow\nenabled:yes\n") == "ip mptcp endpoint flush"
