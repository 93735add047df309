"""Compare the claims that an experiment file quotes from a paper with the results of the run.

A claim has a finding for each group that it is about: a scenario under a link condition with the labels of the metric.
A trend along links has one finding for all its links; so has a correlation, and a claim about pairs. `judging` defines
the verdicts, `estimates` the quantities. A group without values has a finding as well: ``no data``; so has a scenario
of which the run leaves out link conditions, for example in a short form of the experiment.

The verdict on the whole claim is that of most groups: the lower median of the verdicts of the groups with values, in
the order *contradicted*, *not seen*, *same direction*, *as claimed*. For a claim about all groups (``groups: all``:
"always", "never") it is the worst verdict.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import Any

from mplab.analysis.metric import Labels, label_sort_key
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.verdicts.correction import Correction, correct
from mplab.analysis.verdicts.estimates import ClaimEstimate, Estimator, Place, UnmeasuredError
from mplab.analysis.verdicts.judging import (
    VERDICTS,
    judge_crossover,
    judge_effect,
    judge_equivalence,
    judge_value,
)
from mplab.format.claim import LINKS, Claim, Verdict
from mplab.format.finding import ClaimFinding


@dataclass(frozen=True)
class Outcome:
    """A claim with its findings, and the verdict on the whole claim."""

    claim: Claim
    findings: tuple[ClaimFinding, ...]

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all groups."""
        return _over_all(self.claim, [finding.verdict for finding in self.findings])

    @property
    def confirmed(self) -> bool:
        """Return whether the verdict is certain: it is the same if only the confirmed findings count.

        At least half of the findings with values must be confirmed, or, for a claim about all groups that is met, all.
        """
        measured = [finding for finding in self.findings if finding.verdict in VERDICTS]
        sure = [finding.verdict for finding in measured if finding.confirmed]
        if not sure or _over_all(self.claim, sure) != self.verdict:
            return False
        if self.claim.groups == "all":
            return self.verdict != "as claimed" or len(sure) == len(self.findings)
        return 2 * len(sure) >= len(measured)

    @property
    def without_interval(self) -> int:
        """Return the number of findings with a verdict on values, but without an interval."""
        return sum(finding.verdict in VERDICTS and finding.interval is None for finding in self.findings)


def outcomes(analysis: Analysis) -> list[Outcome]:
    """Return the outcome of each claim of the experiment, in the order of its file; p is corrected over all of them."""
    estimator = Estimator(analysis)
    found = [(claim, list(_findings(analysis, estimator, claim))) for claim in analysis.run.manifest.experiment.claims]
    corrections = iter(correct([finding for _, findings in found for finding in findings]))
    return [
        Outcome(
            claim,
            tuple(with_correction(finding, next(corrections)) for finding in findings),
        )
        for claim, findings in found
    ]


def with_correction(finding: ClaimFinding, corrected: Correction) -> ClaimFinding:
    """Return a finding with its corrected p."""
    return finding.model_copy(update={"p_corrected": corrected.p, "confirmed": corrected.confirmed})


def _over_all(claim: Claim, verdicts: Sequence[Verdict]) -> Verdict:
    measured = sorted(VERDICTS.index(verdict) for verdict in verdicts if verdict in VERDICTS)
    if not measured:
        return next((verdict for verdict in verdicts if verdict == "not measurable here"), "no data")
    return VERDICTS[measured[0] if claim.groups == "all" else measured[(len(measured) - 1) // 2]]


def _findings(analysis: Analysis, estimator: Estimator, claim: Claim) -> Iterator[ClaimFinding]:
    if claim.not_measurable:
        yield ClaimFinding(verdict="not measurable here", missing=claim.not_measurable)
        return
    places = list(_places(analysis, estimator, claim))
    if not places:
        known = estimator.metric(claim.metric)
        lacking = "the run has no cell that the claim is about" if known else f"no cell has a value of {claim.metric}"
        yield ClaimFinding(verdict="no data", missing=lacking)
    for place in places:
        yield _finding(estimator, claim, place)
    if places:
        scenarios = claim.scenarios or tuple(dict.fromkeys(place.scenario for place in places))
        yield from _left_out(analysis, claim, scenarios)


def _left_out(analysis: Analysis, claim: Claim, scenarios: Sequence[str]) -> Iterator[ClaimFinding]:
    """Yield a finding for each scenario of which the run leaves out conditions that the claim is about."""
    matrix, links = analysis.run.manifest.experiment.matrix, _links(analysis, claim)
    for scenario in scenarios:
        absent = [link for link in links if not matrix.has((scenario, claim.transport, link))]
        if absent:
            missing = f"{len(absent)} of {len(links)} link conditions are not in this run: {', '.join(absent)}"
            link = absent[0] if len(absent) == 1 else ""
            yield ClaimFinding(scenario=scenario, link=link, verdict="no data", missing=missing)


def _links(analysis: Analysis, claim: Claim) -> list[str]:
    return list(claim.links) or [link.name for link in analysis.run.manifest.experiment.links]


def _places(analysis: Analysis, estimator: Estimator, claim: Claim) -> Iterator[Place]:
    """Yield the groups that a claim is about, in the order of the experiment file, whether they have values or not."""
    experiment = analysis.run.manifest.experiment
    links = _links(analysis, claim)
    along_links = claim.trend is not None and claim.trend.along == LINKS
    over_links = claim.kind == "correlation" or claim.of_pairs or along_links
    planned = {
        scenario: [link for link in links if experiment.matrix.has((scenario, claim.transport, link))]
        for scenario in _scenarios(analysis, estimator, claim)
    }
    found = {label: _label_sets(estimator, claim, label, there) for label, there in planned.items() if there}
    seen = {labels for sets in found.values() for labels in sets}
    missing = [labels for labels in _named_labels(estimator, claim) if labels not in seen]
    for position, (scenario, sets) in enumerate(found.items()):
        if not sets and seen and any(estimator.labels(claim.metric, scenario, link) for link in planned[scenario]):
            continue  # it has only labels that the claim is not about
        for labels in [*sets, *(missing if position == 0 else [])] or [()]:
            if over_links:
                yield Place(scenario, tuple(planned[scenario]), labels)
            else:
                yield from (Place(scenario, (link,), labels) for link in planned[scenario])


def _scenarios(analysis: Analysis, estimator: Estimator, claim: Claim) -> list[str]:
    if claim.scenarios:
        return list(claim.scenarios)
    known = [scenario.label for scenario in analysis.run.manifest.experiment.scenarios]
    with_values = {group.scenario for group in analysis.groups}
    measuring = {group.scenario for group in analysis.groups if group.metric.name == claim.metric}
    return [label for label in known if label in measuring or label not in with_values]


def _label_sets(estimator: Estimator, claim: Claim, scenario: str, links: Sequence[str]) -> list[Labels]:
    """Return the combinations of labels that have values, without the labels that the claim pools."""
    merged = _merged(claim)
    found: dict[Labels, None] = {}
    for link in links:
        for labels in estimator.labels(claim.metric, scenario, link):
            if all(name not in claim.labels or value in claim.labels[name] for name, value in labels):
                found.setdefault(tuple(item for item in labels if item[0] not in merged))
    return sorted(found, key=label_sort_key)


def _named_labels(estimator: Estimator, claim: Claim) -> list[Labels]:
    """Return the combinations of the labels that the claim names, if it names all labels that it does not pool."""
    metric, merged = estimator.metric(claim.metric), _merged(claim)
    names = [name for name in sorted(metric.labels) if name not in merged] if metric else []
    if not names or not set(names) <= set(claim.labels):
        return []
    return [tuple(zip(names, values, strict=True)) for values in product(*(claim.labels[name] for name in names))]


def _merged(claim: Claim) -> set[str]:
    along = [claim.trend.along] if claim.trend is not None and claim.trend.along != LINKS else []
    return {*claim.pooled_labels, *along}


def _finding(estimator: Estimator, claim: Claim, place: Place) -> ClaimFinding:
    metric = estimator.metric(claim.metric)
    link = place.links[0] if len(place.links) == 1 else ""
    group: dict[str, Any] = {"scenario": place.scenario, "link": link, "labels": dict(place.labels)}
    if metric is None:
        return ClaimFinding(**group, verdict="no data", missing=f"no cell has a value of {claim.metric}")
    try:
        estimate = estimator.estimate(claim, metric, place)
    except UnmeasuredError as error:
        return ClaimFinding(**group, verdict="no data", missing=str(error))
    verdict, certain = _judged(claim, estimate)
    null, p = estimate.tests.get(verdict, ("", None))
    interval = estimate.interval
    return ClaimFinding(
        **group,
        against=estimate.baseline.transport.label if estimate.baseline is not None else None,
        cells=estimate.cells,
        values=estimate.values,
        unit=estimate.unit,
        estimate=estimate.value,
        interval=(_finite(interval.low), _finite(interval.high)) if interval is not None else None,
        verdict=verdict,
        certain=certain,
        null=null if p is not None else "",
        p=p,
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _judged(claim: Claim, estimate: ClaimEstimate) -> tuple[Verdict, bool]:
    bounds = estimate.bounds
    trend = claim.trend.form if claim.trend is not None else ""
    if trend == "crossover":
        return judge_crossover(estimate.value, estimate.interval, bounds, opposite=estimate.opposite)
    if estimate.value is None:
        return "no data", False
    if trend == "flat" or claim.kind == "no_difference":
        return judge_equivalence(estimate.value, estimate.interval, bounds)
    if claim.kind in ("value", "share"):
        return judge_value(estimate.value, estimate.interval, bounds)
    return judge_effect(estimate.value, estimate.interval, bounds)
