"""Compare the results of a reproduced run with the original, metric by metric and contrast by contrast."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from mplab.analysis.record.run import Run
from mplab.analysis.record.tables import Row
from mplab.analysis.results.frames import SEPARATOR, Results
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.power import LEVEL
from mplab.analysis.text import signed, spread
from mplab.analysis.verdicts.compare import ComparedRuns, MetricChange, Verdict, compare

Agreement: TypeAlias = Literal["agrees", "differs", "cannot be told"]

OF_CHANGE: Mapping[Verdict, Agreement] = {
    "no difference seen": "agrees",
    "better": "differs",
    "worse": "differs",
    "different": "differs",
    "gone": "differs",
    "too few": "cannot be told",
    "new": "cannot be told",
}
"""What a verdict of `mplab.analysis.verdicts.compare` means for a run that should have the same results."""

PAIRS = 6
"""From so many on, intervals are those of signed ranks; bootstrap intervals of fewer are too narrow to judge by."""


class ContrastKey(NamedTuple):
    """Which contrast, the same of both runs."""

    scenario: str
    link: str
    metric: str
    labels: str
    transport: str
    reference: str


@dataclass(frozen=True)
class Found:
    """What one run says of a contrast; ``interval`` and ``p`` (corrected by Holm's method) are None with few blocks."""

    pairs: int
    shift: float
    interval: Interval | None
    p: float | None
    unit: str
    headline: bool

    @property
    def side(self) -> int:
        """-1 or 1 when the difference is more than chance, and 0 when it may be chance."""
        if self.p is None or self.p > LEVEL or not self.shift:
            return 0
        return 1 if self.shift > 0 else -1

    @property
    def text(self) -> str:
        """``−0.52 s (−0.61 … −0.44)``."""
        ends = f" ({spread(self.interval.low, self.interval.high)})" if self.interval else ""
        return f"{signed(self.shift)} {self.unit}".rstrip() + ends


@dataclass(frozen=True)
class ContrastPair:
    """A contrast in the first run and in the second; None: that run has none."""

    key: ContrastKey
    before: Found | None
    after: Found | None

    @property
    def name(self) -> str:
        """``web · baseline · page_load_time · wiki: mptcp against sptcp-wifi``."""
        key = self.key
        of = SEPARATOR.join(part for part in (key.scenario, key.link, key.metric, key.labels) if part)
        return f"{of}: {key.transport} against {key.reference}"

    @property
    def text(self) -> str:
        """``−0.52 s (−0.61 … −0.44) → −0.49 s (−0.58 … −0.41)``."""
        return " → ".join(found.text if found else "nothing" for found in (self.before, self.after))

    @property
    def headline(self) -> bool:
        """Whether it is of a headline metric."""
        return any(found is not None and found.headline for found in (self.before, self.after))

    @property
    def agreement(self) -> Agreement:
        """Whether both say the same.

        They agree when both see a difference and it has the same direction. They differ when it has the other one,
        when their 95 % intervals (of `PAIRS` blocks or more) have nothing in common, or when the contrast is gone.
        """
        if self.before is None:
            return "cannot be told"
        if self.after is None or self.before.side * self.after.side < 0:
            return "differs"
        if min(self.before.pairs, self.after.pairs) >= PAIRS and _apart(self.before.interval, self.after.interval):
            return "differs"
        return "agrees" if self.before.side and self.after.side else "cannot be told"


@dataclass(frozen=True)
class Agreed:
    """The results of two runs side by side. What decides is what is said of headline metrics."""

    compared: ComparedRuns
    contrasts: tuple[ContrastPair, ...]

    @property
    def differing(self) -> tuple[MetricChange | ContrastPair, ...]:
        """What of the headline metrics differs."""
        changes = [c for c in self.compared.changes if c.metric.headline and OF_CHANGE[c.verdict] == "differs"]
        return (*changes, *(pair for pair in self.contrasts if pair.headline and pair.agreement == "differs"))

    @property
    def agreement(self) -> Agreement:
        """Of the whole: it cannot be told when nothing of the headline metrics could be judged."""
        if self.differing:
            return "differs"
        changes = [OF_CHANGE[change.verdict] for change in self.compared.changes if change.metric.headline]
        contrasts = [pair.agreement for pair in self.contrasts if pair.headline]
        return "agrees" if "agrees" in (*changes, *contrasts) else "cannot be told"


def agree(before: Run, after: Run) -> Agreed:
    """Compare an analysed run with the same made again.

    Raises:
        NotAnalysedError: one of them has no report with values.
    """
    old, new = _contrasts(before), _contrasts(after)
    pairs = [ContrastPair(key, old.get(key), new.get(key)) for key in dict.fromkeys((*old, *new))]
    pairs.sort(key=lambda pair: not pair.headline)
    return Agreed(compare([before], after), tuple(pairs))


def _contrasts(run: Run) -> dict[ContrastKey, Found]:
    results = Results((run,))
    columns = ("scenario", "metric", "headline")
    headline = {(scenario, name): shown for scenario, name, shown in results.statistics.select(columns).iter_rows()}
    return dict(_found(row, headline) for row in results.contrasts.iter_rows(named=True))


def _found(row: Row, headline: Mapping[tuple[str, str], bool]) -> tuple[ContrastKey, Found]:
    key = ContrastKey(*(row[name] for name in ContrastKey._fields))
    both = row["low"] is not None and row["high"] is not None
    interval = Interval(row["low"], row["high"]) if both else None
    shown = headline[key.scenario, key.metric]
    return key, Found(row["pairs"], row["shift"], interval, row["p_holm"], row["unit"], shown)


def _apart(one: Interval | None, other: Interval | None) -> bool:
    return one is not None and other is not None and (one.high < other.low or other.high < one.low)


def told(pairs: tuple[ContrastPair, ...]) -> Iterator[ContrastPair]:
    """Those that a person wants to see: of headline metrics, and all that differ."""
    yield from (pair for pair in pairs if pair.headline or pair.agreement == "differs")
