"""Linux servers (the proxy's, or any other) that shape with the kernel's traffic control."""
