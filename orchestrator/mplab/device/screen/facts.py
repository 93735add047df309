"""What automation is told of the device."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceFacts:
    """What device it is."""

    product: str = "mplab"
    sdk: int = 34
    width: int = 1080
    height: int = 2340
    density: int = 440
    """Dots per inch."""
    model: str = "Emulated"
    manufacturer: str = "mplab"
    release: str = "14"
