"""Phones that shape their own paths. The lab file has a command line that opens a phone's root shell."""
