"""Read a run directory: manifest, cells, links, and tables of captures and phone logs. No score is computed here."""
