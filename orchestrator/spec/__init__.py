"""Experiment files and link conditions: read strictly, resolved fully."""

from orchestrator.spec.direction import Direction, GilbertElliott, Queue
from orchestrator.spec.experiment import Experiment, ScenarioUse, Tolerance, TransportUse
from orchestrator.spec.link import LinkCondition, list_links, load_link, load_links
from orchestrator.spec.path import PathCondition
from orchestrator.spec.resolve import Catalog, TransportInfo, load_experiment

__all__ = [
    "Catalog",
    "Direction",
    "Experiment",
    "GilbertElliott",
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
    "load_links",
]
