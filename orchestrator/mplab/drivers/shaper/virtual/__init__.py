"""A virtual router: a whole Linux with traffic control, in user mode, that stands in for an OpenWrt router."""
