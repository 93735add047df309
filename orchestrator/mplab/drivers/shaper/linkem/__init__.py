"""The link emulator of the virtual lab."""
