"""Virtual routers: user-mode Linux with traffic control, in place of an OpenWrt router."""
