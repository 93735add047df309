"""Finds ``ui-scenarios/mplab/scenarios/<name>/scores.py`` and imports it as ``mplab.scenarios.<name>.scores``."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from mplab.analysis.errors import ScenarioMissingError
from mplab.analysis.metric import Metric, Observation, Value

PACKAGE = "mplab.scenarios"
_WITHOUT_FOLDER = 2
Score = Callable[[Sequence[Observation], Mapping[str, pl.DataFrame], Path], list[Value]]
"""Observations, tables and folder of a cell → its values."""


@dataclass(frozen=True)
class Plugin:
    """What a scenario folder gives the analysis."""

    name: str
    metrics: tuple[Metric, ...]
    score: Score


def default_folders() -> tuple[Path, ...]:
    """``ui-scenarios`` of the checkout."""
    return (Path(__file__).resolve().parent.parent / "ui-scenarios",)


def load(name: str, folders: Sequence[Path] | None = None) -> Plugin:
    """Load one scenario's scores.

    Args:
        name: looked up among the folders that have scores; it is never used as a path, since a manifest may hold any.
        folders: where scenarios' folders are; None: `default_folders`.

    Raises:
        ScenarioMissingError: no folder has this name, or its ``scores.py`` cannot be used.
    """
    folders = default_folders() if folders is None else folders
    there = {path.parent.name: path.parent for root in reversed(folders) for path in root.glob("*/scores.py")}
    folder = there.get(name)
    if folder is None:
        looked = ", ".join(str(path) for path in folders)
        known = ", ".join(sorted(there)) or "none"
        raise ScenarioMissingError(
            f"scenario {name!r}: no folder of this name with a scores.py in {looked}; there is: {known}"
        )
    module = _import_scores(name, folder.resolve())
    metrics: Any = getattr(module, "METRICS", None)
    score: Any = getattr(module, "score", None)
    if not isinstance(metrics, tuple | list) or not all(isinstance(metric, Metric) for metric in metrics):
        raise ScenarioMissingError(f"{folder / 'scores.py'}: METRICS is not a tuple of mplab.analysis.metric.Metric")
    if not callable(score):
        raise ScenarioMissingError(f"{folder / 'scores.py'}: there is no function score(observations, tables)")
    return Plugin(name, tuple(metrics), _with_folder(score))


def _with_folder(score: Callable[..., list[Value]]) -> Score:
    """`score` as one that is given the cell's folder, which it takes only when it has a parameter for it."""
    if len(inspect.signature(score).parameters) > _WITHOUT_FOLDER:
        return score
    return lambda observations, tables, _folder: score(observations, tables)


def _import_scores(name: str, folder: Path) -> ModuleType:
    _ensure_package(name, folder)
    try:
        return importlib.import_module(f"{PACKAGE}.{name}.scores")
    except Exception as error:
        where = folder / "scores.py"
        raise ScenarioMissingError(f"{where}: cannot be imported: {type(error).__name__}: {error}") from error


def _ensure_package(name: str, folder: Path) -> None:
    """Register the folder as the package ``mplab.scenarios.<name>``, unless it is that already."""
    if PACKAGE not in sys.modules:
        root = ModuleType(PACKAGE)
        root.__path__ = []
        sys.modules[PACKAGE] = root
    full_name = f"{PACKAGE}.{name}"
    present = sys.modules.get(full_name)
    if present is not None:
        if [Path(path).resolve() for path in present.__path__] == [folder]:
            return
        for module in [m for m in sys.modules if m == full_name or m.startswith(f"{full_name}.")]:
            del sys.modules[module]
    location = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        full_name, location if location.is_file() else None, submodule_search_locations=[str(folder)]
    )
    if spec is None:
        spec = importlib.machinery.ModuleSpec(full_name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    package = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = package
    setattr(sys.modules[PACKAGE], name, package)
    if spec.loader is not None:
        spec.loader.exec_module(package)
