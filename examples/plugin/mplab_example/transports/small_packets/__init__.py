"""TCP in small packets."""
