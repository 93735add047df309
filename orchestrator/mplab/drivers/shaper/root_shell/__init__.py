"""Phones that shape their own paths; a command line in the lab file opens the root shell."""
