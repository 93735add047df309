"""Virtual routers: a user-mode Linux with traffic control that replaces an OpenWrt router."""
