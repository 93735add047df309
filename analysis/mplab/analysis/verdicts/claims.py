"""Compare the claims that an experiment file quotes from a paper with the results of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from mplab.analysis.statistics.effects import Interval, gain, gain_interval, seed_of
from mplab.analysis.statistics.summaries import Analysis, Group, Series
from mplab.format.experiment import Claim

Verdict = Literal["as claimed", "more", "less", "not seen"]


@dataclass(frozen=True)
class ClaimFinding:
    """The measured gain for a claim in one group, with the verdict on the claim.

    A group has the values of all transports for one metric with its labels, in one scenario under one link condition.

    Attributes:
        group: the group in which the gain was measured.
        baseline: the transport with the best median among those in the claim's ``against``.
        gain: gain of the claim's transport over ``baseline``, as a fraction of the median of ``baseline``.
        interval: 95 % interval of ``gain``; each resample selects the baseline again. None: it cannot be computed.
        verdict: position of ``gain`` relative to the claimed range; see `judge`.
        certain: both ends of the interval have the same verdict as ``gain``.
    """

    group: Group
    baseline: Series
    gain: float
    interval: Interval | None
    verdict: Verdict
    certain: bool


@dataclass(frozen=True)
class Outcome:
    """A claim with its findings; a group in which a transport of the claim was not measured has no finding."""

    claim: Claim
    claimed: Interval
    findings: tuple[ClaimFinding, ...]

    @property
    def spread(self) -> Interval | None:
        """Return the range from the smallest to the largest gain of the findings; None without findings."""
        gains = [finding.gain for finding in self.findings]
        return Interval(min(gains), max(gains)) if gains else None


def outcomes(analysis: Analysis) -> list[Outcome]:
    """Return the outcome of each claim of the experiment, in the order of its file."""
    return [_outcome(analysis, claim) for claim in analysis.run.manifest.experiment.claims]


def judge(gain_found: float, claimed: Interval) -> Verdict:
    """Return the verdict on a gain, compared with the claimed range, both as fractions.

    Below the range, a gain of 0 or less is ``not seen``.
    """
    if gain_found < claimed.low:
        return "less" if gain_found > 0 else "not seen"
    return "more" if gain_found > claimed.high else "as claimed"


def _outcome(analysis: Analysis, claim: Claim) -> Outcome:
    low, high = claim.gain_percent
    claimed = Interval(low / 100, high / 100)
    findings = [
        finding
        for group in analysis.groups
        if group.metric.name == claim.metric
        and claim.is_about(group.scenario, group.link)
        and (finding := _finding(analysis, group, claim, claimed)) is not None
    ]
    return Outcome(claim, claimed, tuple(findings))


def _finding(analysis: Analysis, group: Group, claim: Claim, claimed: Interval) -> ClaimFinding | None:
    mine = group.of(claim.transport)
    there = _group_of_others(analysis, group, claim)
    others = [series for label in claim.against if there and (series := there.of(label)) is not None]
    if mine is None or len(others) < len(claim.against):
        return None
    value = gain([median(series.numbers) for series in others], median(mine.numbers), group.metric.better)
    if value is None:
        return None
    experiment_seed = analysis.run.manifest.experiment.seed
    key: tuple[object, ...] = (group.scenario, group.link, group.metric.name, group.labels, claim.transport)
    key = (*key, *claim.against, *([claim.against_link] if claim.against_link else []))
    interval = gain_interval(
        [series.numbers for series in others],
        mine.numbers,
        group.metric.better,
        seed_of(experiment_seed, "claim", *key),
    )
    verdict = judge(value, claimed)
    certain = interval is not None and {judge(end, claimed) for end in (interval.low, interval.high)} == {verdict}
    return ClaimFinding(group, _best(group, others), value, interval, verdict, certain)


def _group_of_others(analysis: Analysis, group: Group, claim: Claim) -> Group | None:
    """Return the group with the transports to which the claim compares its transport.

    That is ``group`` or, if the claim has ``against_link``, the same metric under that link condition; None if it was
    not measured.
    """
    if not claim.against_link:
        return group
    wanted = (group.scenario, claim.against_link, group.metric.name, group.labels)
    return next((g for g in analysis.groups if (g.scenario, g.link, g.metric.name, g.labels) == wanted), None)


def _best(group: Group, series: Sequence[Series]) -> Series:
    pick = min if group.metric.better == "lower" else max
    return pick(series, key=lambda candidate: median(candidate.numbers))
