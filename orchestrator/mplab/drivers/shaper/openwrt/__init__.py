"""Real routers with OpenWrt over SSH, shaping with the kernel's traffic control."""
