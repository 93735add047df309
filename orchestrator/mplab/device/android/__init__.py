"""The phone behind adb: its state, and what its commands answer."""
