"""Locations of the JSON Schemas of users' files and of records; `mplab.cli.schema` writes them."""

from pathlib import Path

DIRECTORY = Path(__file__).parents[3] / "docs" / "schema"

EXPERIMENT, CAMPAIGN = "experiment.schema.json", "campaign.schema.json"
LINK, LAB = "link.schema.json", "lab.schema.json"
MANIFEST, CELL, SCORES = "manifest.schema.json", "cell.schema.json", "scores.schema.json"
RUN_EVENTS, CAMPAIGN_EVENTS = "run-events.schema.json", "campaign-events.schema.json"
"""Files in `DIRECTORY`. `LAB` depends on the installed drivers, so it is not under version control."""
