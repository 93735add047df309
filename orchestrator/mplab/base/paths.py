"""Names of a phone's two paths and of their interfaces. A real phone's interfaces may have other names."""

from collections.abc import Mapping
from typing import Final

WLAN: Final = "wlan0"
RMNET: Final = "rmnet0"
INTERFACES: Final[Mapping[str, str]] = {"wifi": WLAN, "lte": RMNET}
"""Path → interface."""
