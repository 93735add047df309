"""Runs that are planned in a fake lab."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.bench import RunBench, experiment_text

Planned = Callable[..., RunBench]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """Plan a run of an experiment: see `experiment_text`."""

    def plan(**experiment: object) -> RunBench:
        return RunBench.planned(tmp_path, experiment_text(**experiment))  # type: ignore[arg-type]

    return plan
