"""Real routers with OpenWrt, reached over SSH, that shape by the kernel's traffic control."""
