"""A phone that is a node of the virtual lab."""
