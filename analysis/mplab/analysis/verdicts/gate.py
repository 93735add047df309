"""Decide whether a run passes the regression gate: check budgets, changes for the worse, and missing series."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mplab.analysis.results.frames import SEPARATOR
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.text import HARD_SPACE, Scale, p_text, percent, scale_of, tenths
from mplab.analysis.verdicts.budgets import JudgedLimit, Measured, is_about, judge_limits
from mplab.analysis.verdicts.compare import ComparedRuns, MetricChange
from mplab.analysis.verdicts.trend import History
from mplab.format.experiment import Budget

State: TypeAlias = Literal["passed", "failed", "not judged"]


@dataclass(frozen=True)
class GateCheck:
    """The result of one check; ``kind`` is ``series``, ``limit``, ``no worse than``, ``change`` or ``level``.

    ``about`` names the checked metric, or the series: the combination of scenario, transport and link.
    """

    kind: str
    about: str
    state: State
    text: str


def checks(compared: ComparedRuns, histories: Iterable[History] = ()) -> list[GateCheck]:
    """Check a run that was compared with a baseline, and return the results of all checks.

    1. Series: a combination of scenario, transport and link that the baseline measured but the run did not plan, or for
       which the run has no value, fails. A run that has no series in common with the baseline fails, too: else a
       renamed label would turn the gate off. Headline metrics that are gone come next.
    2. The budgets of the run's experiment.
    3. Changes of headline metrics for which no budget sets a limit relative to the baseline.
    4. Levels: for each of ``histories`` (of the compared runs, the run itself last), the last change of level fails if
       it was for the worse by more than the budgets allow, even if the run does not differ from its neighbours.

    Raises:
        BudgetError: a limit cannot be converted to its metric's unit.
    """
    experiment = compared.run.manifest.experiment
    measured = [_measured(change) for change in compared.changes if change.after.values]
    limits = judge_limits(experiment.budgets, measured, experiment.seed)
    relative = [budget for budget in experiment.budgets if budget.no_worse_than_percent is not None]
    budget_checks = [_of_limit(judged) for judged in limits]
    judged = set()
    for budget in relative:
        own = [change for change in compared.changes if is_about(budget, _measured(change))]
        judged |= {change.key for change in own}
        budget_checks += [_no_worse(budget, change) for change in own]
        if not own:
            text = "not measured in the baseline, nor in this run"
            budget_checks.append(GateCheck("no worse than", budget.metric, "failed", text))
    unbudgeted = [change for change in compared.changes if change.metric.headline and change.key not in judged]
    levels = [check for history in histories if (check := _of_level(history, relative)) is not None]
    found = [*_series(compared), *budget_checks, *map(_of_change, unbudgeted), *levels]
    gone = {name_of(change) for change in compared.of("gone")}
    return sorted(found, key=lambda check: 0 if check.kind == "series" else 1 if check.about in gone else 2)


def _series(compared: ComparedRuns) -> Iterator[GateCheck]:
    """Yield a failed check for each series that the baseline measured but the run did not plan or measure.

    If run and baseline have no values in common, yield only one failed check.
    """
    if compared.no_common_values:
        text = "the run and the baseline have no common series: nothing was compared"
        yield GateCheck("series", "all", "failed", text)
        return
    reasons = (
        (compared.missing, "measured in the baseline, not in this run's plan"),
        (compared.emptied, "measured in the baseline; this run has no value"),
    )
    for all_series, text in reasons:
        for series in sorted(all_series):
            about = SEPARATOR.join((series.scenario, series.transport, series.link))
            yield GateCheck("series", about, "failed", text)


def name_of(change: MetricChange) -> str:
    """Return the name of the changed metric: ``web · mptcp · baseline · page_load_time · wiki``."""
    key = change.key
    parts = (key.scenario, key.transport, key.link, key.metric, key.labels)
    return SEPARATOR.join(part for part in parts if part)


def change_text(change: MetricChange) -> str:
    """Return a change as text: ``1.42 → 1.61 s, +13.4 % (95 % interval +8.1 to +19.4 %), p = 0.004``."""
    scale = scale_of_changes(change)
    return ", ".join((_from_to(change.before.median, change.after.median, scale), *_details(change)))


def scale_of_changes(*changes: MetricChange) -> Scale:
    """Return the scale in which the values of changes of one metric are shown."""
    medians = (side.median for change in changes for side in (change.before, change.after))
    return scale_of(changes[0].metric.unit, (median for median in medians if median is not None))


def interval_text(interval: Interval | None) -> str:
    """Return the ends of an interval of changes: ``+8.1 to +19.4 %``; "" for None."""
    if interval is None:
        return ""
    low, high = (tenths(end, sign=True) for end in (interval.low, interval.high))
    return f"{low.removesuffix(f'{HARD_SPACE}%')} to {high}"


def _details(change: MetricChange) -> Iterator[str]:
    if change.relative is not None:
        limits = interval_text(change.relative_interval)
        yield tenths(change.relative, sign=True) + (f" (95 % interval {limits})" if limits else "")
    if change.p_corrected is not None:
        yield p_text(change.p_corrected, "p")


def _from_to(before: float | None, after: float | None, scale: Scale) -> str:
    if before is None or after is None:
        return " → ".join("nothing" if value is None else scale.text(value) for value in (before, after))
    return f"{scale.number(before)} → {scale.text(after)}"


def _measured(change: MetricChange) -> Measured:
    key = change.key
    labels = tuple(label for label in key.labels.split(SEPARATOR) if label)
    return Measured(key.scenario, key.link, key.transport, change.metric, labels, change.after.values)


def _of_limit(judged: JudgedLimit) -> GateCheck:
    return GateCheck("limit", judged.about, "passed" if judged.verdict == "kept" else "failed", judged.text)


def _no_worse(budget: Budget, change: MetricChange) -> GateCheck:
    """Check a change against a budget that sets a limit relative to the baseline.

    The check fails when the metric is gone, or significantly worse by more than the allowed fraction. Too few values
    and new metrics are not judged.
    """
    allowed = (budget.no_worse_than_percent or 0.0) / 100
    text = f"{change_text(change)}; allowed: {percent(allowed)} worse"
    state: State = "passed"
    if change.verdict == "gone":
        state = "failed"
    elif change.verdict in {"too few", "new"}:
        state = "not judged"
    elif change.verdict == "worse" and (change.relative is None or abs(change.relative) > allowed):
        state = "failed"
    return GateCheck("no worse than", name_of(change), state, text)


def _of_level(history: History, budgets: Sequence[Budget]) -> GateCheck | None:
    """Check a history's last change of level against the strictest budget; return None if the level never changed."""
    if not history.changes:
        return None
    last = history.changes[-1]
    labels = tuple(label for label in history.labels.split(SEPARATOR) if label)
    about = Measured(history.scenario, history.link, history.transport, history.metric, labels, ())
    allowed = min((b.no_worse_than_percent or 0.0 for b in budgets if is_about(b, about)), default=0.0) / 100
    relative = history.relative(last)
    failed = bool(history.worse(last)) and (relative is None or abs(relative) > allowed)
    since = history.points[last.index].run_id
    text = f"level {history.size(last)} since {since}; {history.evidence(last)}"
    return GateCheck("level", about.name, "failed" if failed else "passed", text)


def _of_change(change: MetricChange) -> GateCheck:
    states: dict[str, State] = {"worse": "failed", "gone": "failed", "too few": "not judged", "new": "not judged"}
    return GateCheck("change", name_of(change), states.get(change.verdict, "passed"), change_text(change))
