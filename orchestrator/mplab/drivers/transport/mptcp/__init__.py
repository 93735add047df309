"""Multipath TCP of the kernel (RFC 8684)."""
