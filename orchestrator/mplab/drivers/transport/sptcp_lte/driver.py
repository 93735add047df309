"""Driver of ``sptcp-lte``: TCP over LTE."""

from mplab.base.paths import RMNET
from mplab.drivers.transport.single_path import SinglePathDriver
from mplab.format.palette import VERMILION
from mplab.userfiles.experiments.transport import ViaOptions

DRIVER = SinglePathDriver("sptcp-lte", "TCP over LTE", VERMILION, "s", ViaOptions, paths=(RMNET,))
