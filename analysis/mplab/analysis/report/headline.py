"""Answer in one sentence which transport was best, by how much, under which conditions, and how certain that is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from mplab.analysis.figures.style import MAX_FACETS
from mplab.analysis.metric import Labels
from mplab.analysis.record.run import Run
from mplab.analysis.report.conditions import conditions
from mplab.analysis.statistics.contrast import MOST_NEEDED
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.equivalence import equivalent
from mplab.analysis.statistics.power import LEVEL
from mplab.analysis.statistics.summaries import Analysis, Group, Series, without_cells
from mplab.analysis.text import DASH, HARD_SPACE, Scale, decimals_apart, listed, p_text, plural, scale_of, tenths
from mplab.analysis.verdicts.findings import GroupKey, PairFinding, find
from mplab.format.experiment import TransportRecord

TOO_FEW, NEITHER = "too few repetitions", "neither is better"


@dataclass(frozen=True)
class WithoutFlagged:
    """An answer without the flagged cells.

    Attributes:
        cells: number of flagged cells with a value for the answer.
        finding: the comparison without them; None: fewer than two transports have a value.
        changed: True if the verdict, or the better transport, is another one.
        sentence: the difference and the verdict without them.
    """

    cells: int
    finding: PairFinding | None
    changed: bool
    sentence: str


@dataclass(frozen=True)
class HeadlineVerdict:
    """The answer for one combination of labels; ``winner`` None: no transport was shown to be better.

    Attributes:
        label: values of the labels, as text.
        conditions: link condition in words.
        winner: the better transport.
        sentence: activity, conditions, medians, difference, interval and verdict.
        state: ``better``, ``equivalent``, ``undecided``, ``too few repetitions``, or ``neither is better``.
        amount: difference of the best multipath transport from the best single path: ``30.0 % less``; "" without one.
        good: the multipath transport (or the first one of two of a kind) is on the better side.
        medians: transport label → median as text, for the table of all answers.
        finding: the numbers; None for answers over many labels.
        without_flagged: the answer without the flagged cells; None: it has none.
    """

    label: str
    conditions: str
    winner: TransportRecord | None
    sentence: str
    state: str
    medians: Mapping[str, str]
    amount: str = ""
    good: bool = True
    finding: PairFinding | None = None
    without_flagged: WithoutFlagged | None = None

    @property
    def summary(self) -> str:
        """Return the verdict in a few words: ``Multipath TCP is better, 30.0 % less``."""
        if self.winner is None:
            return self.state
        return f"{self.winner.title} is better" + (f", {self.amount}" if self.amount and self.good else "")


@dataclass(frozen=True)
class HeadlineAnswer:
    """The answers for one headline metric in one scenario and link: a verdict per combination of labels."""

    scenario: str
    link: str
    metric: str
    verdicts: tuple[HeadlineVerdict, ...]
    warnings: tuple[str, ...]


def answers(analysis: Analysis, findings: Mapping[GroupKey, PairFinding]) -> list[HeadlineAnswer]:
    """Return an answer per headline metric, scenario and link, in the order of the experiment.

    A metric that has values of only one transport is left out, unless neither lower nor higher values are better.
    """
    result = []
    sensitivity, alike = _Sensitivity(analysis), _alike(analysis)
    links = {link.name: link for link in analysis.run.manifest.experiment.links}
    for panel in analysis.panels(traced=False):
        first = panel[0]
        metric = first.metric
        if not metric.headline:
            continue
        places = [conditions(links.get(first.link), _way(group)) for group in panel]
        if len(panel) > MAX_FACETS and metric.better != "neither":
            found = [finding for group in panel if (finding := findings.get(group.key)) is not None]
            verdicts = [_verdict_of_many(panel, found, places[0])] if found else []
        else:
            found_or_none = [findings.get(group.key) for group in panel]
            verdicts = [
                _verdict(finding, place, sensitivity, named=first.metric.activity in alike)
                if finding is not None
                else _medians_only(group, place)
                for group, finding, place in zip(panel, found_or_none, places, strict=True)
                if finding is not None or metric.better == "neither"
            ]
        if verdicts:
            result.append(HeadlineAnswer(first.scenario, first.link, metric.title, tuple(verdicts), _warnings(panel)))
    return result


def flagged_cells(run: Run) -> frozenset[str]:
    """Return the IDs of the ok cells with warnings, or on an overloaded host."""
    return frozenset(
        cell.id
        for cell in run.cells
        if cell.ok and cell.record is not None and (cell.record.warnings or cell.record.host.overloaded)
    )


def verdict_text(finding: PairFinding | None) -> str:
    """Return the verdict in one or two words; "" without a finding."""
    if finding is None:
        return ""
    return TOO_FEW if finding.verdict == "too few" else finding.verdict


def _way(group: Group) -> Literal["down", "up"]:
    return "up" if dict(group.labels).get("direction", group.metric.way) == "up" else "down"


def _warnings(panel: Sequence[Group]) -> tuple[str, ...]:
    lacking = sorted({s.transport.title for group in panel for s in group.series if len(s.values) < s.cells})
    return (f"Some ok cells lack a value: {', '.join(lacking)} (see n in the table).",) if lacking else ()


def _medians_only(group: Group, place: str) -> HeadlineVerdict:
    """Return the answer for a metric of which neither lower nor higher values are better."""
    scale = _scale(group)
    texts = {s.transport.label: scale.text(_median(s)) for s in group.measured}
    medians = [f"{s.transport.title} {texts[s.transport.label]}" for s in group.measured]
    sentence = f"{group.metric.activity_of(group.labels)} over {place}: medians {listed(medians)}."
    return HeadlineVerdict(group.label_text, place, None, sentence, NEITHER, texts)


def _alike(analysis: Analysis) -> set[str]:
    """Return the activities that several scenarios of the run share; metrics without an activity have ""."""
    scenarios: dict[str, set[str]] = {"": {"", "*"}}
    for group in analysis.groups:
        scenarios.setdefault(group.metric.activity, set()).add(group.scenario)
    return {activity for activity, labels in scenarios.items() if len(labels) > 1}


def _verdict(finding: PairFinding, place: str, sensitivity: "_Sensitivity", *, named: bool) -> HeadlineVerdict:
    group, sample, reference = finding.group, finding.sample, finding.reference
    scale = _scale(group)
    amount, good = _difference(finding)
    scenario = f" ({group.scenario})" if named else ""
    what = f"{group.metric.activity_of(group.labels)}{scenario} over {place}"
    outcome = group.metric.outcome_of(scale.text(_median(sample)))
    both = sample.transport.single_path is not reference.transport.single_path
    other = f"{reference.transport.title} {scale.text(_median(reference))}"
    against = f"the best single path ({other})" if both else f"the second-best transport ({other})"
    numbers = f"{_interval(finding)}, n{HARD_SPACE}={HARD_SPACE}{_sizes(group)}"
    sentences = [f"{what}: {sample.transport.title} {outcome}, {amount} {_than(amount)} {against}; {numbers}."]
    sentences += _reasons(finding)
    if not both:
        kind = "multipath transport" if sample.transport.single_path else "single path"
        sentences.append(f"No {kind} was measured.")
    return HeadlineVerdict(
        label=group.label_text,
        conditions=place,
        winner=finding.winner.transport if finding.winner else None,
        sentence=" ".join(sentences),
        state=verdict_text(finding),
        amount=amount if finding.verdict == "better" else "",
        good=good,
        medians={s.transport.label: scale.text(_median(s)) for s in group.measured},
        finding=finding,
        without_flagged=sensitivity.of(finding),
    )


def _reasons(finding: PairFinding) -> list[str]:
    """Return the sentences that explain the verdict."""
    unit = finding.group.metric.unit
    interval = finding.equivalence if finding.verdict == "equivalent" else None
    scale = scale_of(unit, (finding.smallest, *((interval.low, interval.high) if interval else ())))
    zone = f"the smallest effect of interest, {scale.text(finding.smallest)}"
    if finding.verdict == "better":
        return _also_near(finding)
    if interval is not None:
        ends = _ends(interval, scale)
        return [f"Equivalent: the 90{HARD_SPACE}% interval of the difference, {ends}, is within ± {zone}."]
    if finding.verdict == "too few":
        if not finding.pairs:
            return ["Too few repetitions: no block has values of both."]
        return [f"Too few repetitions for a verdict: it needs at least{HARD_SPACE}{finding.needed}."]
    why = f"neither a difference ({_p(finding)}) nor equivalence is shown"
    if finding.p is not None and finding.p <= LEVEL:
        if finding.shift is not None and abs(finding.shift) >= finding.smallest:
            return ["Undecided: medians and differences by block have opposite signs, because values are missing."]
        why = f"there is a difference ({_p(finding)}), but it may be smaller than {zone}"
    return [f"Undecided: {why}" + (f"; {_about(finding.needed)} would tell." if finding.needed else ".")]


def _also_near(finding: PairFinding) -> list[str]:
    """Return a sentence with the multipath transports that were not shown to be worse than the winner."""
    winner = finding.winner
    if winner is None or winner is not finding.sample or winner.transport.single_path:
        return []
    near = []
    for series in finding.group.measured:
        pair = {series.transport.label, winner.transport.label}
        contrast = next((c for c in finding.group.contrasts if {c.transport, c.reference} == pair), None)
        if series is winner or series.transport.single_path or contrast is None:
            continue
        same = equivalent(contrast.interval, finding.smallest)
        if contrast.p_family is None or contrast.p_family > LEVEL or same:
            near.append(f"{series.transport.title} ({_scale(finding.group).text(_median(series))})")
    return [f"Not shown to be worse than {winner.transport.title}: {listed(near)}."] if near else []


def _p(finding: PairFinding) -> str:
    corrected = f", corrected for {plural(finding.tests, 'comparison')}" if finding.tests > 1 else ""
    return p_text(finding.p, "p") + corrected


def _about(needed: int) -> str:
    return f"about {needed} repetitions" if needed <= MOST_NEEDED else f"more than {MOST_NEEDED} repetitions"


def _difference(finding: PairFinding) -> tuple[str, bool]:
    """Return (difference of the sample from the reference in words, whether the sample is on the better side)."""
    group = finding.group
    delta = _median(finding.sample) - _median(finding.reference)
    if finding.shift is not None and not finding.by_medians:
        delta = finding.shift
    good = delta <= 0 if group.metric.better == "lower" else delta >= 0
    if delta == 0:
        return "the same", good
    word = "less" if delta < 0 else "more"
    relative = finding.relative
    if relative is None or group.metric.unit == "%":
        return f"{_absolute(abs(delta), _scale(group))} {word}", good
    interval = finding.relative_interval
    decimals = decimals_apart(100 * relative, *(100 * end for end in (interval.low, interval.high))) if interval else 1
    return f"{abs(100 * relative):.{decimals}f}{HARD_SPACE}% {word}", good


def _than(amount: str) -> str:
    return "as" if amount == "the same" else "than"


def _absolute(value: float, scale: Scale) -> str:
    return f"{value:.1f} percentage points" if scale.unit == "%" else scale.text(value)


def _interval(finding: PairFinding) -> str:
    """Return the 95 % interval of the difference in words."""
    group = finding.group
    relative, interval = finding.relative, finding.relative_interval
    if relative is None or group.metric.unit == "%":
        shift = finding.shift_interval
        limits = _ends(shift, _scale(group)) if shift else ""
        return f"95{HARD_SPACE}% interval of the difference {limits}" if limits else "no interval"
    if interval is None:
        return "no interval"
    sign = -1 if group.metric.better == "lower" else 1
    low, high = sorted((100 * sign * interval.low, 100 * sign * interval.high))
    decimals = decimals_apart(100 * sign * relative, low, high)
    if round(low, decimals) * round(high, decimals) >= 0 and relative * sign * (low + high) >= 0:
        ends = sorted((abs(low), abs(high)))
        return f"95{HARD_SPACE}% interval {ends[0]:.{decimals}f} to {ends[1]:.{decimals}f}{HARD_SPACE}%"
    words = [f"{abs(end):.{decimals}f}{HARD_SPACE}% {'less' if end < 0 else 'more'}" for end in (low, high)]
    return f"95{HARD_SPACE}% interval {' to '.join(words)}"


def _ends(interval: Interval, scale: Scale) -> str:
    name = f"{HARD_SPACE}points" if scale.unit == "%" else f"{HARD_SPACE}{scale.unit}".rstrip()
    return f"{scale.number(interval.low)} to {scale.number(interval.high)}{name}"


class _Sensitivity:
    """The answers of a run without its flagged cells, with all statistics computed again."""

    def __init__(self, analysis: Analysis) -> None:
        experiment = analysis.run.manifest.experiment
        self._flagged = flagged_cells(analysis.run)
        self._found: Mapping[GroupKey, PairFinding] = {}
        if self._flagged:
            headlines = [group for group in analysis.groups if group.metric.headline]
            self._found = find(without_cells(headlines, self._flagged, experiment.seed), experiment.smallest_effect)

    def of(self, finding: PairFinding) -> WithoutFlagged | None:
        """Return the answer without the flagged cells; None: no value is of a flagged cell."""
        group = finding.group
        own = {value.cell for series in group.measured for value in series.values} & self._flagged
        if not own:
            return None
        left = self._found.get(group.key)
        start = f"Without the {plural(len(own), 'flagged cell')}: "
        if left is None:
            return WithoutFlagged(len(own), None, True, f"{start}no difference can be computed.")
        now, then = _difference_word(finding), _difference_word(left)
        difference = f"also {then}" if now == then else f"{then} instead of {now}"
        before, after = _verdict_word(finding), _verdict_word(left)
        verdict = f"the verdict stays: {after}" if before == after else f"the verdict changes: {after}, not {before}"
        return WithoutFlagged(len(own), left, before != after, f"{start}{difference}; {verdict}.")


def _verdict_word(finding: PairFinding) -> str:
    return f"{finding.winner.transport.title} is better" if finding.winner else verdict_text(finding)


def _difference_word(finding: PairFinding) -> str:
    return "no difference" if finding.relative is None else _share_word(finding.relative, finding.group)


def _share_word(relative: float, group: Group) -> str:
    less = (relative > 0) is (group.metric.better == "lower")
    return f"{tenths(abs(relative))} {'less' if less else 'more'}"


def _sizes(group: Group) -> str:
    sizes = sorted(len(series.values) for series in group.measured)
    return str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def _verdict_of_many(panel: Sequence[Group], found: Sequence[PairFinding], place: str) -> HeadlineVerdict:
    """Return the answer for a metric with many values of a label: the number of values with each verdict."""
    first = panel[0]
    names = " and ".join(name for name, _ in first.labels)
    titles = {s.transport.label: s.transport for group in panel for s in group.measured}
    wins = Counter(finding.winner.transport.label for finding in found if finding.winner is not None)
    ranked = sorted(wins.items(), key=lambda pair: (-pair[1], pair[0]))
    parts = [f"{titles[label].title} is better for {count}" for label, count in ranked]
    others = Counter(verdict_text(finding) for finding in found if finding.winner is None)
    parts += [f"{count} {state}" for state, count in sorted(others.items())]
    any_of: Labels = tuple((name, f"any {name}") for name, _ in first.labels)
    gains = [finding.relative for finding in found if finding.relative is not None]
    spread = ""
    if gains:
        low, middle, high = (float(q) for q in np.quantile(gains, (0.25, 0.5, 0.75)))
        spread = f" Advantage: median {tenths(middle)}, middle half {tenths(low)} to {tenths(high)}."
    leader = titles[ranked[0][0]] if ranked and ranked[0][1] > len(panel) / 2 else None
    start = f"{first.metric.activity_of(any_of)} over {place}: of {len(panel)} values of {names}"
    state = "better" if leader else others.most_common(1)[0][0] if others else "undecided"
    medians = dict.fromkeys(titles, DASH)
    return HeadlineVerdict(f"per {names}", place, leader, f"{start}, {listed(parts)}.{spread}", state, medians)


def _scale(group: Group) -> Scale:
    return scale_of(group.metric.unit, [_median(series) for series in group.measured])


def _median(series: Series) -> float:
    return float(median(series.numbers))
