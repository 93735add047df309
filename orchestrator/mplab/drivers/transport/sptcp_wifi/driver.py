"""Driver of ``sptcp-wifi``: TCP over WiFi."""

from mplab.base.paths import WLAN
from mplab.drivers.transport.single_path import SinglePathDriver
from mplab.format.palette import BLUE

DRIVER = SinglePathDriver("sptcp-wifi", "TCP over WiFi", BLUE, "o", paths=(WLAN,), default=True)
