"""TCP over both networks: new connections take turns."""
