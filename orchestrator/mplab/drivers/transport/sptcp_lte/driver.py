"""Driver of ``sptcp-lte``: TCP over LTE."""

from mplab.base.paths import RMNET
from mplab.drivers.transport.single_path import SinglePathDriver

DRIVER = SinglePathDriver("sptcp-lte", "TCP over LTE", "#E69F00", "s", paths=(RMNET,))
