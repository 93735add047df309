"""Phones that shape their own paths; the run that controls them sends the commands over adb."""
