"""Prepare the list of all cells: a table per scenario and link condition, with the values of headline metrics."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mplab.analysis.record.run import Cell, Run
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import number
from mplab.format.experiment import TransportRecord

MOST_COLUMNS = 8
"""Maximum number of columns with values in a table; the page of a cell has all values of the cell."""

INDEX = "index.html"


@dataclass(frozen=True)
class ListedCell:
    """A row of a table; ``first``: the first cell of its transport. ``values`` has a text per column."""

    cell: Cell
    transport: TransportRecord | None
    first: bool
    values: tuple[str, ...]


@dataclass(frozen=True)
class CellTable:
    """The cells of a scenario under a link condition, by transport; ``columns`` has (label, metric, unit) of each."""

    scenario: str
    link: str
    columns: tuple[tuple[str, str, str], ...]
    rows: tuple[ListedCell, ...]


def places(run: Run) -> list[tuple[str, str]]:
    """Return (scenario, link) of all planned cells, in the order of the experiment."""
    scenarios = [scenario.label for scenario in run.manifest.experiment.scenarios]
    links = [link.name for link in run.manifest.experiment.links]
    known = dict.fromkeys((cell.spec.scenario, cell.spec.link) for cell in run.cells if cell.spec is not None)

    def order(place: tuple[str, str]) -> tuple[int, int]:
        scenario, link = place
        return (
            scenarios.index(scenario) if scenario in scenarios else len(scenarios),
            links.index(link) if link in links else len(links),
        )

    return sorted(known, key=order)


class Anchors:
    """Names of the places in the list of cells.

    ``c3``: table of the third scenario and link; ``c3-t1``: its first transport; ``l2``: tables of the second link.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._tables = {place: f"c{n}" for n, place in enumerate(places(analysis.run), 1)}
        self._transports = {t.label: f"t{n}" for n, t in enumerate(analysis.run.transports, 1)}

    def of(self, scenario: str, link: str, transport: str = "") -> str:
        """Return the name of the place of a scenario and link, or of a transport in it; "" if it has no cell."""
        table = self._tables.get((scenario, link), "")
        if not transport or not table:
            return table
        return f"{table}-{self._transports[transport]}" if transport in self._transports else table

    def of_link(self, link: str) -> str:
        """Return the name of the place of a link condition: its only table, or else the list of its tables."""
        tables = [name for (_, own), name in self._tables.items() if own == link]
        return tables[0] if len(tables) == 1 else f"l{self.links.index(link) + 1}" if tables else ""

    @property
    def links(self) -> list[str]:
        """Return the link conditions with cells, in the order of the tables."""
        return list(dict.fromkeys(link for _, link in self._tables))

    def scenarios_of(self, link: str) -> list[tuple[str, str]]:
        """Return (scenario, name of its table) of each scenario with cells under a link condition."""
        return [(scenario, name) for (scenario, own), name in self._tables.items() if own == link]


def cell_tables(analysis: Analysis) -> list[CellTable]:
    """Return a table for each scenario and link condition; cells without a plan are in a last one without columns."""
    run = analysis.run
    columns, values = _headline_values(analysis)
    order = {transport.label: index for index, transport in enumerate(run.transports)}
    transports = {transport.label: transport for transport in run.transports}
    by_place: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in run.cells:
        by_place[(cell.spec.scenario, cell.spec.link) if cell.spec is not None else ("", "")].append(cell)
    tables = []
    for place in [*places(run), ("", "")]:
        cells = by_place[place]
        if not cells:
            continue
        shown = columns.get(place, [])[:MOST_COLUMNS]
        rows: list[ListedCell] = []
        for cell in sorted(cells, key=lambda cell: order.get(cell.spec.transport, len(order)) if cell.spec else 0):
            transport = transports.get(cell.spec.transport) if cell.spec is not None else None
            texts = tuple(values.get((cell.id, *column[:2]), "") for column in shown)
            first = not rows or rows[-1].transport is not transport
            rows.append(ListedCell(cell, transport, first, texts))
        tables.append(CellTable(*place, tuple(column[1:] for column in shown), tuple(rows)))
    return tables


_Column = tuple[str, str, str, str]
"""Name of the metric, label, title, unit."""


def _headline_values(
    analysis: Analysis,
) -> tuple[Mapping[tuple[str, str], list[_Column]], Mapping[tuple[str, str, str], str]]:
    """Return (scenario, link) → columns, and (cell, metric, label) → value as text."""
    columns: dict[tuple[str, str], list[_Column]] = defaultdict(list)
    values = {}
    for group in analysis.groups:
        if not group.metric.headline:
            continue
        metric = group.metric
        columns[group.scenario, group.link].append((metric.name, group.label_text, metric.title, metric.unit))
        for series in group.measured:
            for value in series.values:
                values[value.cell, metric.name, group.label_text] = number(value.value)
    return columns, values
