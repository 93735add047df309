"""A phone that shapes itself, by the root shell that a run has of it over adb."""
