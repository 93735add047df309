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
"""Verdict of `mplab.analysis.verdicts.compare` → agreement of a reproduced run with the original."""

PAIRS = 6
"""Minimum number of pairs for a signed-rank interval; bootstrap intervals of fewer pairs are too narrow to judge."""


class ContrastKey(NamedTuple):
    """Identifies a contrast: the difference between two transports in one metric.

    The original run and its reproduction have the same key for the same contrast.
    """

    scenario: str
    link: str
    metric: str
    labels: str
    transport: str
    reference: str


@dataclass(frozen=True)
class ContrastResult:
    """The result of a contrast in one run.

    ``shift`` is the estimated difference of the transport minus its reference, in ``unit``. ``interval`` and ``p``
    (corrected for all contrasts of the family) are None if there are too few blocks.
    """

    pairs: int
    shift: float
    interval: Interval | None
    p: float | None
    unit: str
    headline: bool

    @property
    def side(self) -> int:
        """Return the sign of a significant difference (-1 or 1), or 0 when the difference is not significant."""
        if self.p is None or self.p > LEVEL or not self.shift:
            return 0
        return 1 if self.shift > 0 else -1

    @property
    def text(self) -> str:
        """Return shift, unit and interval as text: ``−0.52 s (−0.61 … −0.44)``."""
        ends = f" ({spread(self.interval.low, self.interval.high)})" if self.interval else ""
        return f"{signed(self.shift)} {self.unit}".rstrip() + ends


@dataclass(frozen=True)
class ContrastPair:
    """A contrast in the original run (``before``) and in its reproduction (``after``); None: the run lacks it."""

    key: ContrastKey
    before: ContrastResult | None
    after: ContrastResult | None

    @property
    def name(self) -> str:
        """Return the name of the contrast: ``web · baseline · page_load_time · wiki: mptcp against sptcp-wifi``."""
        key = self.key
        of = SEPARATOR.join(part for part in (key.scenario, key.link, key.metric, key.labels) if part)
        return f"{of}: {key.transport} against {key.reference}"

    @property
    def text(self) -> str:
        """Return both results as text: ``−0.52 s (−0.61 … −0.44) → −0.49 s (−0.58 … −0.41)``."""
        return " → ".join(result.text if result else "nothing" for result in (self.before, self.after))

    @property
    def headline(self) -> bool:
        """Return whether the metric is a headline metric in either run."""
        return any(result is not None and result.headline for result in (self.before, self.after))

    @property
    def agreement(self) -> Agreement:
        """Return whether both runs have the same result for this contrast: ``agrees``, ``differs``, ``cannot be told``.

        They agree when both differences are significant and have the same direction. They differ when the directions
        are opposite, when the second run lacks the contrast, or when the 95 % intervals do not overlap and each is of
        `PAIRS` blocks or more. All other cases are ``cannot be told``.
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
    """The results of a run compared with those of its reproduction; only headline metrics decide the agreement."""

    compared: ComparedRuns
    contrasts: tuple[ContrastPair, ...]

    @property
    def differing(self) -> tuple[MetricChange | ContrastPair, ...]:
        """Return the results of headline metrics that differ between the runs.

        A `MetricChange` is the result of one transport, a `ContrastPair` that of two.
        """
        changes = [c for c in self.compared.changes if c.metric.headline and OF_CHANGE[c.verdict] == "differs"]
        return (*changes, *(pair for pair in self.contrasts if pair.headline and pair.agreement == "differs"))

    @property
    def agreement(self) -> Agreement:
        """Return the agreement over all headline metrics; ``cannot be told`` when none of them could be judged."""
        if self.differing:
            return "differs"
        changes = [OF_CHANGE[change.verdict] for change in self.compared.changes if change.metric.headline]
        contrasts = [pair.agreement for pair in self.contrasts if pair.headline]
        return "agrees" if "agrees" in (*changes, *contrasts) else "cannot be told"


def agree(before: Run, after: Run) -> Agreed:
    """Compare an analysed run (``before``) with its reproduction (``after``).

    Raises:
        NotAnalysedError: one of the runs has no report with values.
        TablesError: a report or scores of one of the runs are damaged.
    """
    old, new = _contrasts(before), _contrasts(after)
    pairs = [ContrastPair(key, old.get(key), new.get(key)) for key in dict.fromkeys((*old, *new))]
    pairs.sort(key=lambda pair: not pair.headline)
    return Agreed(compare([before], after), tuple(pairs))


def _contrasts(run: Run) -> dict[ContrastKey, ContrastResult]:
    results = Results((run,))
    columns = ("scenario", "metric", "headline")
    headline = {(scenario, name): shown for scenario, name, shown in results.statistics.select(columns).iter_rows()}
    return dict(_result(row, headline) for row in results.contrasts.iter_rows(named=True))


def _result(row: Row, headline: Mapping[tuple[str, str], bool]) -> tuple[ContrastKey, ContrastResult]:
    key = ContrastKey(*(row[name] for name in ContrastKey._fields))
    both = row["low"] is not None and row["high"] is not None
    interval = Interval(row["low"], row["high"]) if both else None
    shown = headline[key.scenario, key.metric]
    return key, ContrastResult(row["pairs"], row["shift"], interval, row["p_family"], row["unit"], shown)


def _apart(one: Interval | None, other: Interval | None) -> bool:
    return one is not None and other is not None and (one.high < other.low or other.high < one.low)


def printed_pairs(pairs: tuple[ContrastPair, ...]) -> Iterator[ContrastPair]:
    """Yield the contrasts to print: those of headline metrics, and those of other metrics in which the runs differ."""
    yield from (pair for pair in pairs if pair.headline or pair.agreement == "differs")
