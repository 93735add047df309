"""Single-path TCP over the cellular network only."""
