"""Every invalid lab file gives exactly the message in the .txt file next to it."""

from pathlib import Path

import pytest

from mplab.userfiles.labs.lab import load_lab
from mplab.userfiles.labs.labuse import use_lab
from tests.golden.conftest import Refused

GOLDEN = Path(__file__).parent
NAMES = sorted({path.stem for path in (GOLDEN / "labs").iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(name: str, refused: Refused) -> None:
    refused(Path("labs") / f"{name}.yaml", load_lab)


@pytest.mark.parametrize("name", sorted({path.stem for path in (GOLDEN / "lab-uses").iterdir()}))
def test_what_runs_cannot_use_gets_its_message(name: str, refused: Refused) -> None:
    refused(Path("lab-uses") / f"{name}.yaml", use_lab)


def test_every_message_names_file_and_line() -> None:
    for path in (GOLDEN / "labs").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith(f"labs/{path.stem}.yaml:"), line
