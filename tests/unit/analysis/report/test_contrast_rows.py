"""The numbers of a contrast: one table for the page, JSON, CSV and the manual."""

import re
from pathlib import Path

from mplab.analysis.statistics.contrast import CONTRAST_FIELDS

MANUAL = Path(__file__).parents[4] / "docs" / "statistics.md"


def test_the_manual_lists_every_key_and_column_in_order() -> None:
    text = MANUAL.read_text(encoding="utf-8")
    section = text[text.index("## Keys and columns") : text.index("## What else")]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")][2:]
    keys = [name for row in rows for name in re.findall(r"`(\w+)`", row[2])]
    columns = [name for row in rows for name in re.findall(r"`(\w+)`", row[3])]
    assert keys == [field.name for field in CONTRAST_FIELDS]
    assert columns == [column for field in CONTRAST_FIELDS for column in field.csv]


def test_no_key_and_no_column_is_given_twice() -> None:
    names = [field.name for field in CONTRAST_FIELDS]
    columns = [column for field in CONTRAST_FIELDS for column in field.csv]
    assert len(set(names)) == len(names)
    assert len(set(columns)) == len(columns)
