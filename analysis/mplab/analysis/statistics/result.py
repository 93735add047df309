"""Input of the figures and the report."""

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
        """Return the groups by scenario, link and metric: a panel is the content of one figure or table."""
        panels: dict[tuple[str, str, str], list[Group]] = {}
        for group in self.groups:
            panels.setdefault((group.scenario, group.link, group.metric.name), []).append(group)
        return [tuple(groups) for groups in panels.values()]

    @property
    def several_links(self) -> bool:
        """Return whether there are several link conditions, so that titles must name them."""
        return len(self.run.manifest.experiment.links) > 1 or len({group.link for group in self.groups}) > 1
