"""Compare the requested links with those measured before each cell."""

from dataclasses import dataclass

from mplab.analysis.record.run import Run
from mplab.format.cell import LinkProof

QUANTITIES = (("Download rate", "rate"), ("Upload rate", "rate"), ("Round-trip time", "rtt"))
"""(title, kind of tolerance) of each quantity of a link."""


@dataclass(frozen=True)
class Measurement:
    """Requested value (``asked``) and measured value of one quantity of a cell's link.

    Rates are in kbit/s, round-trip times in ms. ``kind`` (``rate`` or ``rtt``) selects the tolerance that applies.
    """

    cell: str
    outcome: str
    link: str
    interface: str
    quantity: str
    kind: str
    asked: float
    measured: float
    where: str

    @property
    def deviation(self) -> float:
        """Return (measured - requested) / requested."""
        return (self.measured - self.asked) / self.asked


def measurements(run: Run) -> list[Measurement]:
    """Return the measurements of all cells, sorted by link, interface, quantity and cell.

    Quantities with a requested value of 0 (unlimited) are left out.
    """
    rows = []
    for cell in run.cells:
        if cell.record is None or cell.spec is None:
            continue
        for interface, sides in cell.record.links.items():
            for title, kind, wanted, got in _quantities(sides):
                if wanted and wanted > 0 and got is not None:
                    rows.append(
                        Measurement(
                            cell.id, cell.outcome, cell.spec.link, interface, title, kind, wanted, got, sides.where
                        )
                    )
    links = [link.name for link in run.manifest.experiment.links]
    titles = [title for title, _ in QUANTITIES]
    return sorted(
        rows,
        key=lambda m: (
            links.index(m.link) if m.link in links else len(links),
            m.link,
            not m.interface.startswith("wlan"),
            m.interface,
            titles.index(m.quantity),
            m.cell,
        ),
    )


def tolerance_of(run: Run, kind: str) -> float:
    """Return the accepted deviation of ``rtt`` or ``rate`` as a fraction. Raises KeyError for another kind."""
    tolerance = run.manifest.experiment.tolerance
    return {"rtt": tolerance.rtt_percent, "rate": tolerance.rate_percent}[kind] / 100


def _quantities(sides: LinkProof) -> list[tuple[str, str, float | None, float | None]]:
    """Return (title, kind of tolerance, requested value, measured value) of each of `QUANTITIES`."""
    requested, measured = sides.asked, sides.measured
    values = (
        (requested.down_kbps, measured.down_kbps),
        (requested.up_kbps, measured.up_kbps),
        (requested.rtt_ms, measured.rtt_ms_median),
    )
    return [(*quantity, *pair) for quantity, pair in zip(QUANTITIES, values, strict=True)]
