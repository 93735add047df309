"""Plot the download time with and without smart reinjection, and the share of bytes that reinjection copied."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Scored, Traces
from mplab.analysis.figures.scored import needs
from mplab.analysis.figures.shapes.classes import COLUMNS, Classes
from mplab.analysis.figures.shapes.common import Axis, NoDataError
from mplab.analysis.figures.style import Drawing
from mplab.format.experiment import TransportRecord

METRIC = "download_time"


@dataclass(frozen=True)
class Reinjection:
    """Two figures: download times, and the share of bytes that reinjection copied (if the cells' records have it)."""

    times: Classes
    copies: Classes

    @property
    def title(self) -> str:
        """Return the title of the first figure."""
        return self.times.title

    @property
    def paper(self) -> str:
        """Return the section of the paper that both figures reproduce."""
        return self.times.paper

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield the drawings of times, and of copied bytes if there are any. Raises NoDataError without times."""
        yield from self.times.draw(name, traces)
        try:
            yield from self.copies.draw(f"{name}-copies", traces)
        except NoDataError:
            return


def times(traces: Traces) -> pl.DataFrame:
    """Return download times, s, with the link condition as ``class`` (a row of the figure).

    Raises:
        NoDataError: there are no ok cells with reinjection, or none without.
    """
    for word, wanted in (("with", _reinjects), ("without", _never_reinjects)):
        needs(traces, wanted, f"it compares mpflex with reinjection and without, and no ok cell is {word} it")
    scores = traces.scores.filter(pl.col("metric") == METRIC)
    several = scores["label"].n_unique() > 1
    facet = pl.col("label") if several else pl.lit("")
    return scores.select(facet.alias("facet"), pl.col("link").alias("class"), "transport", "cell", "value")


def copies(traces: Traces) -> pl.DataFrame:
    """Return the bytes that reinjection copied to another path, as a fraction of the streams' bytes.

    The ``class`` (a row of the figure) is the link condition.
    """
    shares = ((cell, _copied(cell)) for cell in traces.scored)
    rows = [("", cell.link, cell.transport, cell.name, share) for cell, share in shares if share is not None]
    return pl.DataFrame(
        rows, schema=[*((name, pl.String) for name in COLUMNS[:-1]), ("value", pl.Float64)], orient="row"
    )


def _reinjects(transport: TransportRecord) -> bool:
    return transport.sessions and bool(transport.options.get("reinjection", True))


def _never_reinjects(transport: TransportRecord) -> bool:
    return transport.sessions and not _reinjects(transport)


def _copied(cell: Scored) -> float | None:
    paths = list(cell.record.proof.session.paths.values()) if cell.record else []
    total = sum(path.bytes_up + path.bytes_down for path in paths)
    copied = sum(path.copied_up + path.copied_down for path in paths)
    return copied / total if total else None


FIGURE = TraceFigure(
    order=120,
    of_paper=True,
    shape=Reinjection(
        times=Classes(
            title="Time to download one file, with reinjection and without",
            paper="nikravesh2016 §5.4",
            axis=Axis("Download time", "s"),
            caption="After nikravesh2016 §5.4, from our downloads.",
            values=times,
            nothing="no file was downloaded",
        ),
        copies=Classes(
            title="What reinjection costs",
            paper="nikravesh2016 §5.4",
            axis=Axis("Bytes that were copied to another path, of all", "share"),
            caption="After nikravesh2016 §5.4 (about 1.5 %), from the logs of both sides; only bytes of streams.",
            values=copies,
            nothing="no cell's record has the number of copied bytes",
        ),
    ),
)
