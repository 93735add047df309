"""``mplab router`` without a router."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mplab.cli.main import app

LAB = """\
mplab: 1
name: bench
routers:
  wifi: {host: 127.0.0.1, port: 1, interface: wlan0}
phones:
  one: {wifi: {router: wifi}}
"""
LINK = "wifi: {down: 5 Mbit/s, up: 1 Mbit/s, rtt: 20 ms}\nlte: {down: 5 Mbit/s, up: 1 Mbit/s, rtt: 20 ms}\n"


@pytest.fixture
def shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Shape":
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Shape(tmp_path)


class Shape:
    """Calls ``mplab router shape`` with a link condition in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "lab.yaml").write_text(LAB)

    def __call__(self, link: str) -> Result:
        file = self._folder / "mine.yaml"
        file.write_text(link)
        return CliRunner().invoke(app, ["router", "shape", str(self._folder / "lab.yaml"), "one", "--link", str(file)])


def test_a_file_with_a_link_condition_is_taken(shape: Shape) -> None:
    message = str(shape(LINK).exception)
    assert message.startswith("router wifi (root@127.0.0.1:1): unreachable"), "it came as far as the router"


def test_a_file_that_is_wrong_is_refused_before_the_router_is_asked(shape: Shape) -> None:
    assert "mine.yaml" in str(shape(LINK.replace("20 ms", "20 apples")).exception)
