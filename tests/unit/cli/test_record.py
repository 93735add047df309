"""``mplab scenarios record``: the user picks and names elements; the written YAML is valid."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.hierarchy import Bounds, UiNode, write_hierarchy
from mplab.cli.main import app
from mplab.drivers.ui.recording import ways_to
from mplab.userfiles.experiments.app import FILE, load_android_app

BOX = Bounds(0, 0, 100, 100)


def node(**fields: str) -> UiNode:
    return UiNode("android.widget.Button", "com.example.app", bounds=BOX, **fields)  # type: ignore[arg-type]


SCREEN = (
    UiNode(
        "android.widget.FrameLayout",
        "com.example.app",
        bounds=BOX,
        children=(
            node(resource_id="com.example.app:id/fab", text="Post: now", description="Post"),
            node(resource_id="com.example.app:id/row", text="first"),
            node(resource_id="com.example.app:id/row", text="second"),
            node(resource_id="com.facebook.katana:id/(name removed)", description="Like"),
            UiNode("android.widget.EditText", "com.example.app", text="typed", hint="Type", bounds=BOX),
        ),
    ),
)


def found(index: int) -> list[tuple[str, str]]:
    return [(selector.by, selector.value) for selector in ways_to(SCREEN[0].children[index], SCREEN)]


def test_ways_find_the_element_and_no_other() -> None:
    assert found(0) == [("id", "com.example.app:id/fab"), ("description", "Post"), ("text", "Post: now")]
    assert found(1) == [("id", "com.example.app:id/row"), ("text", "first")]
    assert found(2) == [("text", "second")]
    assert found(3) == [("description", "Like")]
    assert found(4) == []


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "screen.xml"
    path.write_text(write_hierarchy(SCREEN))
    return path


def test_what_is_written_can_be_read(dump: Path, tmp_path: Path) -> None:
    target = tmp_path / FILE
    arguments = ["scenarios", "record", "example", "--dump", str(dump), "--into", str(target)]
    result = CliRunner().invoke(app, arguments, input="1 post\n9 x\n1 post\n3 the other row\nd\n")
    assert result.exit_code == 0, result.output
    assert "a number from 1 to 4 and a name" in result.output
    assert "there is an element post already" in result.output
    example = load_android_app(tmp_path, "example")
    assert (example.package, example.start) == ("com.example.app", "com.example.app")
    assert example.elements["post"].value == "com.example.app:id/fab"
    assert [alternative.by for alternative in example.elements["post"].alternatives] == ["id", "description", "text"]
    assert example.elements["the other row"].value == "second"


def test_nothing_named(dump: Path) -> None:
    assert CliRunner().invoke(app, ["scenarios", "record", "x", "--dump", str(dump)], input="d\n").exit_code == 1


KNOWN = """\
# What changes between versions.
android:
  example:
    package: com.example.app
    versions: 1.0 … 2.0
    seen: "Pixel 7, Android 13, 2026-11-01"
    start: com.example.app/.Main
    elements:
      # At the bottom.
      post: [{id: com.example.app:id/old}]
      like:
        - text: [Like, "J'aime"]
"""


def test_one_element_of_a_file_is_replaced_and_the_rest_stays(dump: Path, tmp_path: Path) -> None:
    target = tmp_path / FILE
    target.write_text(KNOWN)
    arguments = ["scenarios", "record", "example", "--dump", str(dump), "--into", str(target)]
    result = CliRunner().invoke(app, arguments, input="1 post\nd\n")
    assert result.exit_code == 0, result.output
    assert "replaced: post. Check 'versions' and 'seen' of example: they are as before" in result.output
    text = target.read_text()
    assert load_android_app(tmp_path, "example").elements["post"].value == "com.example.app:id/fab"
    before, after = KNOWN.splitlines(), text.splitlines()
    assert [line for line in before if line not in after] == ["      post: [{id: com.example.app:id/old}]"]


@pytest.mark.parametrize(
    ("name", "called", "message"),
    [
        (FILE, "other", "no Android app 'other' whose elements could be replaced: it has example. Name another file"),
        ("mine.yaml", "example", "exists, and is no app.yaml in which elements could be replaced. Name another file"),
    ],
)
def test_a_file_in_which_nothing_can_be_replaced(
    dump: Path, tmp_path: Path, name: str, called: str, message: str
) -> None:
    target = tmp_path / name
    target.write_text(KNOWN)
    result = CliRunner().invoke(app, ["scenarios", "record", called, "--dump", str(dump), "--into", str(target)])
    assert str(result.exception) == f"{target}: {message}"
    assert target.read_text() == KNOWN


def test_a_stored_screen_does_not_have_the_version(dump: Path) -> None:
    result = CliRunner().invoke(app, ["scenarios", "record", "x", "--dump", str(dump)], input="1 post\nd\n")
    assert "fill in 'versions'" in result.output
