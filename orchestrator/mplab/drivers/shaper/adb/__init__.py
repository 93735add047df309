"""Rooted phones that shape their own paths; the run that controls such a phone sends the commands over adb."""
