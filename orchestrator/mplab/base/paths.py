"""The two paths of a phone, and its interfaces that they begin at, whatever the phone itself calls these."""

from collections.abc import Mapping
from typing import Final

WLAN: Final = "wlan0"
RMNET: Final = "rmnet0"
INTERFACES: Final[Mapping[str, str]] = {"wifi": WLAN, "lte": RMNET}
"""Path → interface."""
