"""Whether a run has told enough: before it whether that can be known, between its blocks whether it has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mplab.format.experiment import IntervalRule
from mplab.run.outside import Answer, Handler
from mplab.userfiles.check import raise_lines
from mplab.userfiles.experiment import Experiment


def check_interval(experiment: Experiment) -> None:
    """Raise InputError when the intervals of an experiment's stop rule are of a metric that no scenario has."""
    asked = experiment.ending.interval
    if asked is None:
        return
    from mplab.analysis.enough import check_rule  # noqa: PLC0415 - slow to import, needed by few experiments
    from mplab.analysis.pipeline import metrics_of  # noqa: PLC0415 - as above

    metrics = metrics_of({use.label: use.name for use in experiment.scenarios})
    if problem := check_rule(asked, metrics):
        raise_lines([f"{asked.place}: {problem}"])


def teller(run: Path, asked: IntervalRule | None) -> Handler:
    """Answers a run that asks whether it has told enough; what is complete is scored meanwhile."""

    def answer(_asked: Mapping[str, Any]) -> Answer:
        from mplab.analysis.enough import look  # noqa: PLC0415 - as above
        from mplab.analysis.run import read_run  # noqa: PLC0415 - as above

        if asked is None:
            return {"enough": False, "text": "nobody has asked for it", "numbers": {}}
        found = look(read_run(run), asked)
        return {"enough": found.enough, "text": found.text, "numbers": found.to_json()}

    return answer
