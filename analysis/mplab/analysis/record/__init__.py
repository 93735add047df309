"""Read a run directory: manifest, cells, links, captures and phone logs as tables. Nothing here computes a score."""
