"""Shared fixtures of the analysis tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.pipeline import analyze
from tests.unit.analysis.synthetic import Synthetic


@pytest.fixture
def synthetic(tmp_path: Path) -> Callable[..., Synthetic]:
    """A builder of runs in the test's own folder."""

    def make(**changes: Any) -> Synthetic:
        return Synthetic(tmp_path, **changes)

    return make


@pytest.fixture
def analyzed(synthetic: Callable[..., Synthetic]) -> Callable[..., Path]:
    """Builds a run, analyses it, returns its directory."""

    def make(**changes: Any) -> Path:
        builder = synthetic(**changes)
        run = builder.build()
        analyze(run, scenario_folders=builder.scenario_folders)
        return run

    return make


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses draw nothing: for what a report says in numbers and words."""
    monkeypatch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))


@pytest.fixture
def answered(analyzed: Callable[..., Path], no_figures: None) -> Callable[..., Path]:
    """Builds a run, analyses it without figures, returns its directory."""
    return analyzed
