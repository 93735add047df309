"""A run of an experiment of the catalogue, and a catalogue with rows for it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mplab.userfiles.papers.paper import Catalogue, Paper, RowFile
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

CLAIM: dict[str, Any] = {
    "text": "Both paths are better than one",
    "figure": "some2020-fig1",
    "metric": "time",
    "transport": "mptcp",
    "against": ["sptcp-wifi", "sptcp-lte"],
    "kind": "gain",
    "claimed": {"low": 10.0, "high": 40.0, "unit": "%"},
}
NOT_HERE: dict[str, Any] = {
    "text": "Power is higher",
    "figure": "some2020-fig2",
    "not_measurable": "there is no model of energy",
}
ROWS: tuple[dict[str, Any], ...] = (
    {"experiment": "toy", "figures": {"box": "*-time", "links": "*"}, "why": "our links are faster"},
    {"experiment": "toy", "missing": "a model of energy", "unclaimed": "not shown if there are claims"},
    {"missing": "coupled congestion control"},
    {"cannot": "it measures the Internet of 2020"},
    {"experiment": "later", "unclaimed": "it has no number"},
)


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with toy_scenario(tmp_path_factory.mktemp("toy")):
        yield


@pytest.fixture
def synthetic(tmp_path: Path) -> Callable[..., Path]:
    """Return a builder of run directories."""

    def make(**changes: Any) -> Path:
        return Synthetic(tmp_path / "runs", **{"name": "toy", "claims": [CLAIM, NOT_HERE], **changes}).build()

    return make


@pytest.fixture
def catalogue() -> Catalogue:
    rows = tuple(
        RowFile.model_validate(
            {
                "id": f"some2020-fig{number}",
                "place": f"figure {number}",
                "shows": "times",
                "numbers": "10 to 40 %",
                **row,
            }
        )
        for number, row in enumerate(ROWS, 1)
    )
    return Catalogue((Paper("some2020", rows),), {"toy": {"quick": {}, "full": {}}, "later": {"quick": {}, "full": {}}})
