"""A device that runs in a node of a lab."""

import subprocess
import sys
from pathlib import Path

from mplab.base.enter import lab_process

_ROOT = Path(__file__).parents[2]


def test_a_device_in_a_node(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        command = ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-m", "tests.device.inside_lab"]
        with lab_process(command, stdout=output, stderr=subprocess.STDOUT) as lab:
            code = lab.wait(120)
    assert code == 0, (tmp_path / "output").read_text()
