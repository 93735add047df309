"""Everything that figures and report are made from."""

from dataclasses import dataclass

from mplab.analysis.record.decode import AnalysisProblem
from mplab.analysis.record.run import Run
from mplab.analysis.scores.shares import InterfaceShare
from mplab.analysis.statistics.summaries import Group


@dataclass(frozen=True)
class Analysis:
    """A run with its statistics."""

    run: Run
    groups: tuple[Group, ...] = ()
    shares: tuple[InterfaceShare, ...] = ()
    problems: tuple[AnalysisProblem, ...] = ()

    def panels(self) -> list[tuple[Group, ...]]:
        """The groups that differ by their labels alone, together: what one figure or table shows."""
        panels: dict[tuple[str, str, str], list[Group]] = {}
        for group in self.groups:
            panels.setdefault((group.scenario, group.link, group.metric.name), []).append(group)
        return [tuple(groups) for groups in panels.values()]

    @property
    def several_links(self) -> bool:
        """Whether a scenario's name alone does not say which condition is meant."""
        return len(self.run.manifest.experiment.links) > 1 or len({group.link for group in self.groups}) > 1
