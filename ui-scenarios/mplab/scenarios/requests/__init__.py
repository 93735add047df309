"""Small HTTP requests at a steady pace: see README.md."""
