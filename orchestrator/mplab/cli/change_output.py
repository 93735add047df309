"""Convert the change of a metric to JSON."""

from mplab.analysis.statistics.effects import Interval
from mplab.analysis.verdicts.compare import MetricChange


def change_content(change: MetricChange) -> dict[str, object]:
    """Return a change as JSON, for programs."""
    return {
        **change.key._asdict(),
        "title": change.metric.title,
        "unit": change.metric.unit,
        "headline": change.metric.headline,
        "verdict": change.verdict,
        "before": {"n": len(change.before.values), "runs": len(change.before.medians), "median": change.before.median},
        "after": {"n": len(change.after.values), "median": change.after.median},
        "shift": change.shift,
        "interval": _ends(change.interval),
        "relative": change.relative,
        "relative_interval": _ends(change.relative_interval),
        "p": change.p,
        "p_corrected": change.p_corrected,
        "test": change.test,
        "least_p": change.least_p,
        "cliffs_delta": change.cliffs_delta,
        "needed": change.needed,
        "usual": _ends(change.usual),
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None
