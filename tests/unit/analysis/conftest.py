"""Shared fixtures of the analysis tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.pipeline import analyze
from tests.foreign import Foreign, installed
from tests.unit.analysis.synthetic import Synthetic, toy_scenario


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Register the scenario of the synthetic runs for all of these tests."""
    with toy_scenario(tmp_path_factory.mktemp("toy")):
        yield


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    """A folder where a test installs its own plug-ins."""
    with installed(tmp_path / "foreign") as plugins:
        yield plugins


@pytest.fixture
def synthetic(tmp_path: Path) -> Callable[..., Synthetic]:
    """Return a builder of runs in the test's own folder."""

    def make(**changes: Any) -> Synthetic:
        return Synthetic(tmp_path, **changes)

    return make


@pytest.fixture
def analyzed(synthetic: Callable[..., Synthetic]) -> Callable[..., Path]:
    """Build a run, analyse it and return its directory."""

    def make(**changes: Any) -> Path:
        builder = synthetic(**changes)
        run = builder.build()
        analyze(run)
        return run

    return make


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let analyses draw no figures: for tests of the numbers and words of a report."""
    monkeypatch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))


@pytest.fixture
def answered(analyzed: Callable[..., Path], no_figures: None) -> Callable[..., Path]:
    """Build a run, analyse it without figures and return its directory."""
    return analyzed
