"""Where the JSON Schemas are that editors read; `mplab.cli.schema` makes them."""

from pathlib import Path

DIRECTORY = Path(__file__).parents[3] / "docs" / "schema"

EXPERIMENT, CAMPAIGN = "experiment.schema.json", "campaign.schema.json"
LINK, LAB = "link.schema.json", "lab.schema.json"
"""Files in `DIRECTORY`. `LAB` depends on the drivers that are installed: it is not under version control."""
