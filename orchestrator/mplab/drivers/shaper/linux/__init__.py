"""Linux servers that shape with the kernel's traffic control: the host of the proxy, or any other server."""
