"""Answer the run's question, asked between its blocks, whether its intervals are narrow enough to stop."""

from collections.abc import Mapping
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.format.experiment import IntervalRule
from mplab.run.hostrpc import Answer, Handler


def stop_rule_handler(run: Path, rule: IntervalRule | None) -> Handler:
    """Return the handler for a run directory. The handler scores complete cells that have no scores."""

    def answer(_asked: Mapping[str, object]) -> Answer:
        if rule is None:
            return {"enough": False, "text": "nobody has asked for it", "numbers": {}}
        with deferred("slow to import, needed by few experiments"):
            from mplab.run.metrics import intervals_of
        return intervals_of(run, rule)

    return answer
