"""The proxy of the virtual lab: a process in a node of its own."""
