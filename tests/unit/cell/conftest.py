"""A fake lab in which single cells are run."""

from pathlib import Path

import pytest

from tests.fakes.bench import CellBench


@pytest.fixture
def bench(tmp_path: Path) -> CellBench:
    return CellBench.in_folder(tmp_path)
