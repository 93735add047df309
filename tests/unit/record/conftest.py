"""A run of four cells, as events."""

from typing import Any

import pytest

from mplab.format.plan import CellSpec
from mplab.format.record import json_of
from mplab.format.runevents import RunEvent


def cell_spec(index: int, transport: str) -> CellSpec:
    return CellSpec(
        id=f"{index:04}-web-{transport}-baseline-r1",
        index=index,
        block=1,
        scenario="web",
        transport=transport,
        link="baseline",
        repetition=1,
        seed=5,
        hash="00" * 32,
    )


@pytest.fixture
def cells() -> list[CellSpec]:
    return [cell_spec(index, transport) for index, transport in enumerate(("mptcp", "lte", "wifi", "mptcp"), start=1)]


@pytest.fixture
def events(cells: list[CellSpec]) -> list[RunEvent]:
    """Return the events: one cell ok, one invalid, one failed after a retry, one not run; one transport skipped."""
    first, second, third, _ = (cell.id for cell in cells)
    skipped = [{"transport": "quic", "reason": "not built"}]
    rows: list[tuple[str, dict[str, Any]]] = [
        ("run_planned", {"cells": list(map(json_of, cells)), "estimate_s": 80.0, "skipped": skipped}),
        ("run_started", {}),
        ("cell_started", {"cell": first, "attempt": 1}),
        ("cell_step", {"cell": first, "step": "probe"}),
        ("cell_finished", {"cell": first, "outcome": "ok", "reasons": [], "duration_s": 10.0}),
        ("cell_started", {"cell": second, "attempt": 1}),
        ("cell_finished", {"cell": second, "outcome": "invalid", "reasons": ["RTT was 90 ms"], "duration_s": 12.0}),
        ("cell_started", {"cell": third, "attempt": 1}),
        ("cell_retried", {"cell": third, "attempt": 2, "reason": "browser gone"}),
        ("cell_started", {"cell": third, "attempt": 2}),
        ("cell_step", {"cell": third, "step": "scenario"}),
        (
            "cell_finished",
            {"cell": third, "outcome": "failed", "reasons": ["phone: \x1b[31mgone\x00", "again"], "duration_s": 30.5},
        ),
        ("run_interrupted", {}),
    ]
    lines = ({"t": 1_700_000_000.0 + n, "event": name, **fields} for n, (name, fields) in enumerate(rows))
    return list(map(RunEvent.parse, lines))
