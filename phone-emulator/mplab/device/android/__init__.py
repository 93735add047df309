"""Emulate the Android phone behind adb: its state, and the answers to its shell commands."""
