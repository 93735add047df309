"""Score the response times of a social network's app."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from mplab.analysis.metric import LOOK_RESOLUTION, NOT_NEGATIVE, Metric, Observation, Value, look_resolution

_ACTIVITY = "Using a social network"
_metric = partial(Metric, source="baerts2015 §4.3", limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "response_time_mean",
        "Response time, mean over actions",
        "s",
        "lower",
        headline=True,
        activity=_ACTIVITY,
        outcome="responds after {value}",
    ),
    _metric("response_time", "Response time", "s", "lower", ("action",)),
    _metric("time_to_texts", "Time until the new stories can be read", "s", "lower"),
    _metric(
        "actions_done",
        "Actions done within the time",
        "%",
        "higher",
        headline=True,
        limits=(0.0, 100.0),
        activity=_ACTIVITY,
        outcome="completes {value} of the actions",
    ),
    LOOK_RESOLUTION,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of `METRICS` for a cell. Response times are means over the rounds.

    A response time lasts from the tap until the result is painted. An action that was unfinished when the time was up
    counts with the time waited until then, a lower bound of its response time.
    """
    waited: dict[str, list[float]] = defaultdict(list)
    texts, finished, planned = [], 0, 0
    for item in observations:
        if item["event"] == "plan":
            planned = int(item["actions"])
        elif item["event"] == "action":
            finished += 1
            waited[item["action"]].append(float(item["response_time_s"]))
            if item["action"] == "refresh" and item["texts_s"] is not None:
                texts.append(float(item["texts_s"]))
        elif item["event"] == "unfinished" and item["waited_s"] > 0:
            waited[item["action"]].append(float(item["waited_s"]))
    means = {action: _mean(times) for action, times in waited.items()}
    values = [Value("response_time", mean, {"action": action}) for action, mean in means.items()]
    if means:
        values.append(Value("response_time_mean", _mean(list(means.values()))))
    if texts:
        values.append(Value("time_to_texts", _mean(texts)))
    if planned:
        values.append(Value("actions_done", 100 * finished / planned))
    return values + look_resolution(observations)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
