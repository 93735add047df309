"""Define the facts that automation reports about the device."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceFacts:
    """Facts about a device."""

    product: str = "mplab"
    sdk: int = 34
    width: int = 1080
    height: int = 2340
    density: int = 440
    """Density, dots per inch."""
    model: str = "Emulated"
    manufacturer: str = "mplab"
    release: str = "14"
