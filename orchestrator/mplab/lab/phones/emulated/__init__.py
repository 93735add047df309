"""An emulated Android device in the virtual lab."""
