"""The links that were asked for and those that were measured before each cell."""

from dataclasses import dataclass

from mplab.analysis.manifest import tolerances
from mplab.analysis.run import Run

QUANTITIES = (
    ("down_kbps", "down_kbps", "Download rate", "rate"),
    ("up_kbps", "up_kbps", "Upload rate", "rate"),
    ("rtt_ms", "rtt_ms_median", "Round-trip time", "rtt"),
)
"""Key under ``asked``, key under ``measured``, title, tolerance that applies."""


@dataclass(frozen=True)
class Measurement:
    """One quantity of one interface in one cell. ``deviation`` is (measured - asked) / asked."""

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
        """As a fraction of what was asked."""
        return (self.measured - self.asked) / self.asked


def measurements(run: Run) -> list[Measurement]:
    """In the order of link, interface, quantity, cell; a quantity asked as 0 (unlimited) is left out."""
    found = []
    for cell in run.cells:
        if cell.record is None or cell.spec is None:
            continue
        for interface, sides in cell.record.links.items():
            for asked_key, measured_key, title, kind in QUANTITIES:
                wanted, got = sides.asked.get(asked_key), sides.measured.get(measured_key)
                if isinstance(wanted, int | float) and wanted > 0 and isinstance(got, int | float):
                    found.append(
                        Measurement(
                            cell.id,
                            cell.outcome,
                            cell.spec.link,
                            interface,
                            title,
                            kind,
                            float(wanted),
                            float(got),
                            sides.where,
                        )
                    )
    links = [link.name for link in run.manifest.experiment.links]
    titles = [title for _, _, title, _ in QUANTITIES]
    return sorted(
        found,
        key=lambda m: (
            links.index(m.link) if m.link in links else len(links),
            m.link,
            not m.interface.startswith("wlan"),
            m.interface,
            titles.index(m.quantity),
            m.cell,
        ),
    )


def tolerance_of(run: Run, kind: str) -> float | None:
    """The accepted deviation as a fraction; None when the manifest does not say."""
    return tolerances(run.manifest.experiment).get(kind)
