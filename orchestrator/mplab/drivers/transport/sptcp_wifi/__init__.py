"""Single-path TCP over WiFi only."""
