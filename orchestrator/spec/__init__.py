"""Experiment files and link conditions: read strictly, resolved fully."""

from orchestrator.spec.experiment import Experiment, ScenarioUse, Tolerance, TransportUse
from orchestrator.spec.link import LinkCondition, PathCondition, Queue, list_links, load_link
from orchestrator.spec.resolve import Catalog, TransportInfo, load_experiment

__all__ = [
    "Catalog",
    "Experiment",
    "LinkCondition",
    "PathCondition",
    "Queue",
    "ScenarioUse",
    "Tolerance",
    "TransportInfo",
    "TransportUse",
    "list_links",
    "load_experiment",
    "load_link",
]
