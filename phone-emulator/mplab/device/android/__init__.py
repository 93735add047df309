"""Emulate the phone behind adb: its state, and the answers of its commands."""
