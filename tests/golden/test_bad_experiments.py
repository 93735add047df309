"""Every wrong experiment file gets exactly the message that stands beside it."""

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.spec import Catalog, load_experiment

GOLDEN = Path(__file__).parent
EXPERIMENTS = GOLDEN / "experiments"
NAMES = sorted({path.stem for path in EXPERIMENTS.iterdir()})


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_gets_its_message(
    name: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_experiment(Path("experiments") / f"{name}.yaml", catalog=catalog)
    message = f"{caught.value}\n"
    expected = EXPERIMENTS / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")


def test_every_message_names_its_file_first() -> None:
    for path in EXPERIMENTS.glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"experiments/{path.stem}.yaml:", "links/")), path.name


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 30
