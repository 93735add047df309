"""Every invalid scripted app gives exactly the message in the .txt file next to it."""

from pathlib import Path

import pytest

from mplab.device.screen import load_script
from tests.golden.conftest import Refused

GOLDEN = Path(__file__).parent
NAMES = sorted({path.stem for path in (GOLDEN / "apps").iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(name: str, refused: Refused) -> None:
    refused(Path("apps") / f"{name}.yaml", load_script)
