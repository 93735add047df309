"""Every invalid experiment file gives exactly the message in the .txt file next to it."""

from functools import partial
from pathlib import Path

import pytest

from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from tests.golden.conftest import Refused

GOLDEN = Path(__file__).parent
EXPERIMENTS = GOLDEN / "experiments"
NAMES = sorted({path.stem for path in EXPERIMENTS.iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(name: str, catalog: Catalog, refused: Refused) -> None:
    refused(Path("experiments") / f"{name}.yaml", partial(load_experiment, catalog=catalog))


def test_every_message_names_its_file_first() -> None:
    for path in EXPERIMENTS.glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"experiments/{path.stem}.yaml:", "links/", "parents/")), path.name


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 30
