"""Messages to a second phone: see README.md."""
