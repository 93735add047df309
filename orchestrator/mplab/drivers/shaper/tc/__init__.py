"""Shape paths by the kernel's traffic control on any machine with a root shell: a router, a server, a phone."""
