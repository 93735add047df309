"""Find text in runs: names, experiments, scenarios, transports, link conditions, metrics, answers."""

from collections.abc import Iterable
from dataclasses import dataclass

from mplab.dashboard.watch import Headline, RunEntry

MOST_WORDS = 8
MOST_LENGTH = 200
"""Characters of a query that are used."""
SHOWN_RUNS = 50
SHOWN_VALUES = 100


@dataclass(frozen=True)
class Found:
    """Result of a search: runs with all words, and headline values whose run, metric and transport have all words."""

    runs: tuple[RunEntry, ...]
    values: tuple[tuple[RunEntry, Headline], ...]
    run_count: int
    """Number of runs that were found; `runs` has the first ones."""
    value_count: int


def search(runs: Iterable[RunEntry], query: str) -> Found:
    """Find runs and values in which each word of a query occurs, in upper or lower case.

    A value is found only if at least one word is in its own scenario, link, metric, labels or transport.
    """
    words = query[:MOST_LENGTH].casefold().split()[:MOST_WORDS]
    found_runs: list[RunEntry] = []
    values: list[tuple[RunEntry, Headline]] = []
    run_count = value_count = 0
    for run in runs if words else ():
        if not all(word in run.words for word in words):
            continue
        run_count += 1
        if len(found_runs) < SHOWN_RUNS:
            found_runs.append(run)
        titles = {label: title for label, title, _ in run.transports}
        about = f"{run.name} {run.experiment} {run.title}".casefold()
        for line in run.headlines:
            own = (line.scenario, line.link, line.metric, line.title, line.labels, line.transport)
            text = " ".join((*own, titles.get(line.transport, ""))).casefold()
            if all(word in text or word in about for word in words) and any(word in text for word in words):
                value_count += 1
                if len(values) < SHOWN_VALUES:
                    values.append((run, line))
    return Found(tuple(found_runs), tuple(values), run_count, value_count)
