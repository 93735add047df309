"""Phones that shape their own paths. The run that controls such a phone sends the commands over adb."""
