"""Driver of ``sptcp-wifi``: TCP over WiFi."""

from mplab.base.paths import WLAN
from mplab.drivers.transport.single_path import SinglePathDriver
from mplab.format.palette import BLUE
from mplab.userfiles.experiments.transport import ViaOptions

DRIVER = SinglePathDriver("sptcp-wifi", "TCP over WiFi", BLUE, "o", ViaOptions, paths=(WLAN,), default=True)
