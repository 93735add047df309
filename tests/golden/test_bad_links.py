"""Every wrong file of a link condition gets exactly the message that stands beside it."""

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.spec.link import read_link_file

GOLDEN = Path(__file__).parent
FILES = sorted((GOLDEN / "bad-links").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_wrong_file_gets_its_message(
    file: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        read_link_file(Path("bad-links") / file.name, Path("links"))
    message = f"{caught.value}\n"
    expected = file.with_suffix(".txt")
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")


def test_every_message_names_its_file_first() -> None:
    for file in FILES:
        for line in file.with_suffix(".txt").read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"bad-links/{file.name}:", "links/")), file.name


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 20
