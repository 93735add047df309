"""TCP over WiFi only."""
