"""Answer in one sentence which transport was best, by how much, and how certain that is."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mplab.analysis.figures.style import MAX_FACETS
from mplab.analysis.statistics.effects import MIN_FOR_INTERVAL, SMALL_SAMPLE
from mplab.analysis.statistics.summaries import Analysis, Group, Series
from mplab.analysis.text import percent, plural, quantity, signed_share
from mplab.format.experiment import TransportRecord

TOO_FEW, UNCLEAR, ALONE = "too few repetitions", "no clear winner", "nothing to compare with"


@dataclass(frozen=True)
class HeadlineVerdict:
    """The best transport for one combination of labels; ``winner`` None: no transport was shown to be better."""

    label: str
    winner: TransportRecord | None
    sentence: str
    doubt: str = ""
    """Short reason why there is no winner; "" if there is one."""
    amount: str = ""
    """Difference between multipath and the best single path, in words.

    ``26 % less`` if multipath won, ``multipath 22 % more`` if the single path won. "" without a winner, or if the gain
    (`mplab.analysis.statistics.effects.gain`) is not known.
    """


@dataclass(frozen=True)
class HeadlineAnswer:
    """The best transports for one headline metric in one scenario and link: a verdict per combination of labels."""

    scenario: str
    link: str
    metric: str
    verdicts: tuple[HeadlineVerdict, ...]
    warnings: tuple[str, ...]


def answers(analysis: Analysis) -> list[HeadlineAnswer]:
    """Return an answer per headline metric, scenario and link, in the order of the experiment.

    A metric that has values of only one transport is left out, unless neither lower nor higher values are better.
    """
    result = []
    for panel in analysis.panels():
        first = panel[0]
        if not first.metric.headline:
            continue
        many = len(panel) > MAX_FACETS and first.metric.better != "neither"
        verdicts = (_verdict_of_many(panel),) if many else tuple(_verdict(group) for group in panel)
        if any(verdict.doubt != ALONE for verdict in verdicts):
            result.append(HeadlineAnswer(first.scenario, first.link, first.metric.title, verdicts, _warnings(panel)))
    return result


def small_sample_warning(n: int) -> str:
    """Return a warning that ``n`` repetitions are few; "" when they are enough."""
    if n >= SMALL_SAMPLE:
        return ""
    if n < MIN_FOR_INTERVAL:
        return f"n = {n}: too few repetitions for an interval or a test; take the numbers as a first look."
    return (
        f"n = {n}: with fewer than {SMALL_SAMPLE} repetitions a 95 % interval is too narrow; "
        "run more before relying on it."
    )


def _warnings(panel: Sequence[Group]) -> tuple[str, ...]:
    sentences = [small_sample_warning(min(group.smallest_n for group in panel))]
    lacking = sorted({s.transport.title for group in panel for s in group.series if len(s.values) < s.cells})
    if lacking:
        sentences.append(f"Some ok cells lack a value: {', '.join(lacking)} (see n in the table).")
    return tuple(warning for warning in sentences if warning)


def _verdict(group: Group) -> HeadlineVerdict:
    best = group.of(group.best)
    if best is None:
        medians = [f"{s.transport.title} {_median(group, s)}" for s in group.measured]
        return HeadlineVerdict(group.label_text, None, f"Medians: {', '.join(medians)}.", "neither is better")
    start = f"{best.transport.title} was best: {_median(group, best)}"
    multipath, base = _best_multipath(group), group.of(group.baseline)
    if base is None or multipath is None or multipath.comparison is None:
        return _one_kind_only(group, best, base, start)
    comparison = multipath.comparison
    change = percent(abs(comparison.gain or 0.0))
    if best is multipath:
        than = f"{change} {_less(group)} than {base.transport.title}, the best single path"
        start += f", {than} ({_median(group, base)})" if comparison.gain else ""
    else:
        start += f". {multipath.transport.title} reached {_median(group, multipath)}"
        start += f", {change} {_more(group)}" if comparison.gain else ""
    doubt = _doubt(group, best, multipath)
    winner, amount = (None, "") if doubt else (best.transport, _amount(group, best, multipath))
    return HeadlineVerdict(group.label_text, winner, f"{start}{_certainty(group, multipath)}", doubt, amount)


def _doubt(group: Group, best: Series, multipath: Series) -> str:
    """Return the reason why no transport is named as the winner; "" if one is named.

    A winner needs a 95 % interval of the gain of multipath (`mplab.analysis.statistics.effects.gain`) that excludes 0.
    If the winner is a multipath transport, the interval of its median must not overlap that of another multipath
    transport.
    """
    comparison = multipath.comparison
    if group.smallest_measured < MIN_FOR_INTERVAL:
        return TOO_FEW
    if comparison is None or comparison.gain_interval is None or 0 in comparison.gain_interval:
        return UNCLEAR
    near = [s for s in group.measured if s is not best and not s.transport.single_path and not _apart(best, s)]
    return " or ".join(s.transport.title for s in (best, *near)) if best is multipath and near else ""


def _apart(a: Series, b: Series) -> bool:
    """Return whether both medians have intervals, and the intervals do not overlap."""
    first, second = (s.description.interval if s.description else None for s in (a, b))
    return first is not None and second is not None and (first.high < second.low or second.high < first.low)


def _certainty(group: Group, multipath: Series) -> str:
    comparison = multipath.comparison
    if comparison is None or comparison.gain is None:
        return "."
    g, n = f"G = {signed_share(comparison.gain)}", f"n = {_sizes(group)}"
    interval = comparison.gain_interval
    if interval is None:
        return f" ({g}, no interval, {n})."
    limits = f"95 % interval {signed_share(interval.low)} to {signed_share(interval.high)}"
    verdict = " The interval includes 0: no difference is shown." if 0 in interval else ""
    return f" ({g}, {limits}, {n}).{verdict}"


def _sizes(group: Group) -> str:
    sizes = sorted(len(series.values) for series in group.measured)
    return str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def _amount(group: Group, best: Series, multipath: Series) -> str:
    gain = multipath.comparison.gain if multipath.comparison is not None else None
    if gain is None:
        return ""
    size = percent(abs(gain))
    return f"{size} {_less(group)}" if best is multipath else f"multipath {size} {_more(group)}"


def _one_kind_only(group: Group, best: Series, base: Series | None, start: str) -> HeadlineVerdict:
    """Return the answer for a group that lacks multipath transports or single paths."""
    others = [s for s in group.measured if s is not best]
    other_texts = "".join(f"; {s.transport.title} {_median(group, s)}" for s in others)
    absent = "No single path" if base is None else "No multipath transport"
    doubt = "" if all(_apart(best, s) for s in others) else UNCLEAR
    if not others:
        doubt = ALONE
    elif group.smallest_measured < MIN_FOR_INTERVAL:
        doubt = TOO_FEW
    winner = None if doubt else best.transport
    return HeadlineVerdict(group.label_text, winner, f"{start}{other_texts}. {absent} was measured.", doubt)


def _best_multipath(group: Group) -> Series | None:
    several = [s for s in group.measured if not s.transport.single_path and s.description is not None]
    sign = 1 if group.metric.better == "lower" else -1
    return min(several, key=lambda s: sign * s.description.median if s.description else 0.0, default=None)


def _verdict_of_many(panel: Sequence[Group]) -> HeadlineVerdict:
    wins = Counter(group.best for group in panel if group.best is not None)
    titles = {s.transport.label: s.transport for group in panel for s in group.measured}
    label_names = ", ".join(name for name, _ in panel[0].labels)
    ranked = sorted(wins.items(), key=lambda pair: (-pair[1], str(pair[0])))
    parts = [f"{titles[str(label)].title} for {count}" for label, count in ranked]
    parts[0] = f"{parts[0]} of {len(panel)}"
    gains = [
        multipath.comparison.gain
        for group in panel
        if (multipath := _best_multipath(group)) and multipath.comparison and multipath.comparison.gain is not None
    ]
    spread = ""
    if gains:
        low, middle, high = (float(q) for q in np.quantile(gains, (0.25, 0.5, 0.75)))
        spread = (
            f" G per {label_names}: median {signed_share(middle)}, middle half {signed_share(low)} to "
            f"{signed_share(high)} ({plural(len(gains), 'value')})."
        )
    leader = titles[str(ranked[0][0])] if ranked[0][1] > len(panel) / 2 else None
    doubt = "" if leader else UNCLEAR
    return HeadlineVerdict(
        f"per {label_names}", leader, f"Best median per {label_names}: {', '.join(parts)}.{spread}", doubt
    )


def _median(group: Group, series: Series) -> str:
    return quantity(series.description.median if series.description else None, group.metric.unit)


def _less(group: Group) -> str:
    return "less" if group.metric.better == "lower" else "more"


def _more(group: Group) -> str:
    return "more" if group.metric.better == "lower" else "less"
