"""Driver of ``sptcp-wifi``: TCP over WiFi."""

from mplab.base.paths import WLAN
from mplab.drivers.transport.single_path import SinglePathDriver

DRIVER = SinglePathDriver("sptcp-wifi", "TCP over WiFi", "#0072B2", "o", paths=(WLAN,), default=True)
