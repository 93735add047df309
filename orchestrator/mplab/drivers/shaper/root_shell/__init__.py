"""A phone that shapes itself, by a root shell that the lab file names."""
