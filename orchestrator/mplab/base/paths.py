"""The two paths of a phone and the phone's interfaces at their start, named independently of the real phone."""

from collections.abc import Mapping
from typing import Final

WLAN: Final = "wlan0"
RMNET: Final = "rmnet0"
INTERFACES: Final[Mapping[str, str]] = {"wifi": WLAN, "lte": RMNET}
"""Path → interface."""
