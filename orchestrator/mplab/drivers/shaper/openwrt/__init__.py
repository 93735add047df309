"""A real router: OpenWrt over SSH, with the kernel's own traffic control."""
