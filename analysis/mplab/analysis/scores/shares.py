"""Compute the share of each interface in the payload bytes of the cells, from the subflows."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from mplab.analysis.record.run import Run
from mplab.analysis.record.tables import read_tables


@dataclass(frozen=True)
class InterfaceShare:
    """Unique payload bytes of an interface, summed over the ok cells of a transport in a scenario and link.

    ``share`` is the mean of the cells' shares (0 … 1), so that all cells have the same weight; ``lowest`` and
    ``highest`` are the smallest and the largest share of a cell.
    """

    scenario: str
    link: str
    transport: str
    interface: str
    cells: int
    bytes_up: int
    bytes_down: int
    share: float
    lowest: float
    highest: float


def interface_shares(run: Run) -> list[InterfaceShare]:
    """Return an `InterfaceShare` per scenario, link, transport and interface.

    They are in the order of the experiment file, with WiFi as the first interface of each transport. Cells that are
    not ok, have no tables or carried no bytes are left out.
    """
    by_group: dict[tuple[str, str, str], list[dict[str, tuple[int, int]]]] = defaultdict(list)
    for cell in run.cells:
        if cell.ok and cell.spec is not None and (bytes_of := _bytes(read_tables(cell)["subflows"])):
            by_group[cell.spec.scenario, cell.spec.link, cell.spec.transport].append(bytes_of)
    shares = []
    for key in sorted(by_group, key=_plan_order(run)):
        cells = by_group[key]
        for interface in sorted({name for cell in cells for name in cell}, key=_wifi_first):
            parts = [sum(cell.get(interface, (0, 0))) / sum(map(sum, cell.values())) for cell in cells]
            up = sum(cell.get(interface, (0, 0))[0] for cell in cells)
            down = sum(cell.get(interface, (0, 0))[1] for cell in cells)
            mean = sum(parts) / len(parts)
            shares.append(InterfaceShare(*key, interface, len(cells), up, down, mean, min(parts), max(parts)))
    return shares


def _bytes(subflows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    by_interface = {}
    grouped = subflows.group_by("interface").agg(pl.col("unique_up").sum(), pl.col("unique_down").sum())
    for interface, up, down in grouped.sort("interface").iter_rows():
        by_interface[str(interface)] = (int(up), int(down))
    return by_interface if any(map(sum, by_interface.values())) else {}


def _wifi_first(interface: str) -> tuple[bool, str]:
    return (not interface.startswith("wlan"), interface)


def _plan_order(run: Run) -> Callable[[tuple[str, str, str]], tuple[tuple[int, str], ...]]:
    experiment = run.manifest.experiment
    names = (
        [scenario.label for scenario in experiment.scenarios],
        [link.name for link in experiment.links],
        [transport.label for transport in experiment.transports],
    )

    def key(group: tuple[str, str, str]) -> tuple[tuple[int, str], ...]:
        return tuple(
            (known.index(name), "") if name in known else (len(known), name)
            for known, name in zip(names, group, strict=True)
        )

    return key
