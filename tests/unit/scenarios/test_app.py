"""What the files of selectors and start commands may say."""

import re
from pathlib import Path

import pytest

from orchestrator.catalog import SCENARIOS_DIR
from orchestrator.errors import InputError
from orchestrator.ui import Selector
from orchestrator.ui.app import FILE, load_android_app, load_app

GOOD = """\
virtual:
  start: "{url}/"
  elements:
    post: {css: "#post"}
android:
  example:
    package: com.example
    versions: 1 … 2
    seen: never on hardware
    start: com.example/.Main
    elements:
      post: [{id: post_button}, {text: [Post, Posten]}, {description: Post}]
"""


def test_each_kind_of_phone_has_its_section(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(GOOD)
    assert load_app(tmp_path).elements == {"post": Selector("css", "#post")}
    android = load_android_app(tmp_path, "example")
    ways = (Selector("text", "Post"), Selector("text", "Posten"), Selector("description", "Post"))
    assert (android.start, android.package) == ("com.example/.Main", "com.example")
    assert android.elements == {"post": Selector("id", "post_button", ways)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("virtual", "other"), "app.yaml:1: unknown key 'other'. Allowed: android, virtual"),
        (GOOD.replace("css", "class"), "app.yaml:4: virtual.elements.post: found 'class'. Did you mean 'css'? Allowed: css, xp"),
        (GOOD.replace('{css: "#post"}', '{css: "#a", id: b}'), "app.yaml:4: virtual.elements.post: found 2: at most 1"),
        (GOOD.replace('"{url}/"', '""'), "app.yaml:2: virtual.start: empty: at least 1 needed"),
        (GOOD.replace("  start:", "  begin:", 1), "app.yaml:1: virtual: key 'start' is missing"),
        (GOOD.replace("com.example\n", "example\n"), "app.yaml:7: android.example.package: found 'example'"),
        (GOOD.replace("    seen: never on hardware\n", ""), "app.yaml:6: android.example: key 'seen' is missing"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        load_app(tmp_path)


def test_app_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(GOOD)
    with pytest.raises(InputError, match=r"unknown Android app 'exmple'\. Did you mean 'example'"):
        load_android_app(tmp_path, "exmple")
    (tmp_path / FILE).write_text("android: {}\n")
    with pytest.raises(InputError, match="no section virtual"):
        load_app(tmp_path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_app(tmp_path)


def test_files_of_the_scenarios() -> None:
    folders = [path.parent for path in SCENARIOS_DIR.glob(f"*/{FILE}")]
    assert {"dropbox", "drive", "facebook"} <= {folder.name for folder in folders}
    for folder in folders:
        assert load_app(folder).elements, folder
