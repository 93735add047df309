"""TCP over the cellular network only."""
