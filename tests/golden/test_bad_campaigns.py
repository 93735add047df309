"""Every invalid campaign file gives exactly the message in the .txt file next to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mplab.campaign.file import load_campaign
from mplab.run.blocks import make_plan
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.labuse import find_lab
from tests.golden.conftest import GOLDEN, Refused

FOLDER = GOLDEN / "campaigns"


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.yaml")}))
def test_wrong_file_gets_its_message(name: str, refused: Refused, catalog: Catalog) -> None:
    def load(path: Path, lab: str, phone: str, given: Mapping[str, Any]) -> Experiment:
        use = find_lab(lab, Path(), phone) if lab else None
        return load_experiment(path, catalog=catalog, lab=use, phone=phone, given=given)

    def read(path: Path) -> object:
        return load_campaign(path, load=load, plan=make_plan)

    refused(Path("campaigns") / f"{name}.yaml", read)


def test_every_message_names_file_and_line() -> None:
    for path in FOLDER.glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"campaigns/{path.stem}.yaml:", "campaigns/wrong.yml:", "campaigns/ok.yml:")), line
