"""Check, when the process inside the lab asks between two blocks, whether the run's intervals are narrow enough."""

from collections.abc import Mapping
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.format.experiment import IntervalRule
from mplab.run.hostrpc import Answer, Handler


def stop_rule_handler(run: Path, rule: IntervalRule | None) -> Handler:
    """Return the function that answers this question for a run directory. It first scores cells without scores."""

    def answer(_asked: Mapping[str, object]) -> Answer:
        if rule is None:
            return {"enough": False, "text": "nobody has asked for it", "numbers": {}}
        with deferred("slow to import, needed by few experiments"):
            from mplab.run.metrics import intervals_of
        return intervals_of(run, rule)

    return answer
