"""Every wrong scripted app gets exactly the message that stands beside it."""

from pathlib import Path

import pytest

from orchestrator.device.screen import load_script
from orchestrator.errors import InputError

GOLDEN = Path(__file__).parent
NAMES = sorted({path.stem for path in (GOLDEN / "apps").iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_script(Path("apps") / f"{name}.yaml")
    message = f"{caught.value}\n"
    expected = GOLDEN / "apps" / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")
