"""A Linux server (the proxy's, or any other), with the kernel's own traffic control."""
