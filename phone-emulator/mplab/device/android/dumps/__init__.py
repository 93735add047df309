"""Render the output of ``dumpsys``, by service, from the phone's state, in the formats of Android 10 to 16."""
