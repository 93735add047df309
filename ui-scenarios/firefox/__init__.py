"""Front pages in Firefox."""
