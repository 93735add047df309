"""A real Android phone on adb."""
