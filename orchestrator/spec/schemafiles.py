"""Where the JSON Schemas are that editors read; `orchestrator.spec.schema` makes them."""

from pathlib import Path

DIRECTORY = Path(__file__).parents[2] / "docs" / "schema"

EXPERIMENT, CAMPAIGN = "experiment.schema.json", "campaign.schema.json"
LINK, LAB = "link.schema.json", "lab.schema.json"
"""Files in `DIRECTORY`."""
