"""Shared fixtures of the analysis tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.pipeline import analyze
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
