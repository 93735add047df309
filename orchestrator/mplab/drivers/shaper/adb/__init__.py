"""Phones that shape their own paths by the root shell that a run has over adb."""
