"""Phones that shape their own paths by a root shell set in the lab file."""
