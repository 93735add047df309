"""What the files of selectors and start commands may say."""

from pathlib import Path

import pytest

from orchestrator.catalog import SCENARIOS_DIR
from orchestrator.errors import InputError, LabNotReadyError
from orchestrator.ui import Selector
from orchestrator.ui.app import FILE, load_app

GOOD = """\
virtual:
  start: "{url}/"
  elements:
    post: {css: "#post"}
android:
  start: com.example/.Main
  elements:
    post: {id: post_button}
"""


def test_each_kind_of_phone_has_its_section(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(GOOD)
    assert load_app(tmp_path).elements == {"post": Selector("css", "#post")}
    android = load_app(tmp_path, "android")
    assert (android.start, android.elements) == ("com.example/.Main", {"post": Selector("id", "post_button")})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("virtual", "other"), "there is no section virtual; there is: other, android"),
        (GOOD.replace("css", "class"), "Input should be 'css', 'xpath', 'id' or 'text'"),
        (GOOD.replace('{css: "#post"}', '{css: "#a", id: b}'), "at most 1 item"),
        (GOOD.replace('"{url}/"', '""'), "at least 1 character"),
        (GOOD.replace("start", "begin"), "Field required"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(LabNotReadyError, match=message):
        load_app(tmp_path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_app(tmp_path)


def test_files_of_the_scenarios() -> None:
    folders = [path.parent for path in SCENARIOS_DIR.glob(f"*/{FILE}")]
    assert {"dropbox", "drive", "facebook"} <= {folder.name for folder in folders}
    for folder in folders:
        assert load_app(folder).elements, folder
