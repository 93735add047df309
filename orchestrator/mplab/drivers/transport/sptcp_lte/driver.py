"""Driver of ``sptcp-lte``: TCP over LTE."""

from mplab.base.paths import RMNET
from mplab.drivers.transport.single_path import SinglePathDriver
from mplab.format.palette import VERMILION

DRIVER = SinglePathDriver("sptcp-lte", "TCP over LTE", VERMILION, "s", paths=(RMNET,))
