"""A Linux server (the proxy's, or any other) or a rooted phone, with the kernel's own traffic control."""

from mplab.drivers.shaper.linux.place import LinuxServer, ShapingPhone

__all__ = ["LinuxServer", "ShapingPhone"]
