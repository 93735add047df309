"""Every invalid file of a link condition gives exactly the message in the .txt file next to it."""

from functools import partial
from pathlib import Path

import pytest

from mplab.userfiles.links.link import read_link_file
from tests.golden.conftest import Refused

GOLDEN = Path(__file__).parent
FILES = sorted((GOLDEN / "bad-links").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_wrong_file_gets_its_message(file: Path, refused: Refused) -> None:
    refused(Path("bad-links") / file.name, partial(read_link_file, links_dir=Path("links")))


def test_every_message_names_its_file_first() -> None:
    for file in FILES:
        for line in file.with_suffix(".txt").read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"bad-links/{file.name}:", "links/")), file.name


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 20
