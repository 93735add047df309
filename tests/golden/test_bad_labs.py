"""Every wrong lab file gets exactly the message that stands beside it."""

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.spec.lab import load_lab

GOLDEN = Path(__file__).parent
NAMES = sorted({path.stem for path in (GOLDEN / "labs").iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_lab(Path("labs") / f"{name}.yaml")
    message = f"{caught.value}\n"
    expected = GOLDEN / "labs" / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")


def test_every_message_names_file_and_line() -> None:
    for path in (GOLDEN / "labs").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith(f"labs/{path.stem}.yaml:"), line
