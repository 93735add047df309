"""Shaping with the kernel's own traffic control, wherever a root shell leads: a router, a server, a phone."""
