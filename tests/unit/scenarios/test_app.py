"""Valid and invalid content of the files with selectors and start commands."""

import re
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import SCENARIOS_DIR
from mplab.drivers.ui.dialogs import load_dialogs
from mplab.format.selector import Selector
from mplab.userfiles.experiments.app import FILE, load_android_app, load_android_apps, load_app

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
        (
            GOOD.replace("css", "class"),
            "virtual.elements.post: found 'class'. Did you mean 'css'? Allowed: css, xp",
        ),
        (GOOD.replace('{css: "#post"}', '{css: "#a", id: b}'), "app.yaml:4: virtual.elements.post: found 2: at most 1"),
        (GOOD.replace('"{url}/"', '""'), "app.yaml:2: virtual.start: empty: at least 1 needed"),
        (GOOD.replace("  start:", "  begin:", 1), "app.yaml:1: virtual: key 'start' is missing"),
        (GOOD.replace("com.example\n", "example\n"), "app.yaml:7: android.example.package: found 'example'"),
        (
            GOOD.replace("    versions", "    devtools: '@chrome'\n    versions"),
            "app.yaml:8: android.example.devtools: found '@chrome'",
        ),
        (GOOD.replace("    seen: never on hardware\n", ""), "app.yaml:6: android.example: key 'seen' is missing"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        load_app(tmp_path)


def test_socket_of_devtools(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(GOOD)
    assert load_android_app(tmp_path, "example").devtools == ""
    (tmp_path / FILE).write_text(GOOD.replace("    versions", "    devtools: example_devtools\n    versions"))
    assert load_android_app(tmp_path, "example").devtools == "example_devtools"


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


VIRTUAL = sorted(path.parent.name for path in SCENARIOS_DIR.glob(f"*/{FILE}") if "virtual:" in path.read_text())
PACKAGES = {
    "com.dropbox.android",
    "com.google.android.apps.docs",
    "com.google.android.youtube",
    "com.dailymotion.dailymotion",
    "org.mozilla.firefox",
    "com.android.chrome",
    "com.facebook.katana",
    "com.facebook.orca",
    "com.whatsapp",
    "org.thoughtcrime.securesms",
    "com.spotify.music",
    "tunein.player",
    "org.linphone",
}


@pytest.mark.parametrize("name", VIRTUAL)
def test_files_of_the_scenarios(name: str) -> None:
    assert load_app(SCENARIOS[name].folder()).elements


def test_android_apps_of_the_scenarios() -> None:
    apps = [app for path in SCENARIOS_DIR.glob(f"*/{FILE}") for app in load_android_apps(path.parent).values()]
    assert {app.package for app in apps} == PACKAGES
    for app in apps:
        assert app.start in {app.package, "{url}"}
        assert all(
            alternative.by not in {"css", "xpath"}
            for element in app.elements.values()
            for alternative in element.alternatives
        )
        ids = [
            alternative.value
            for element in app.elements.values()
            for alternative in element.alternatives
            if alternative.by == "id"
        ]
        assert all(":id/" in value or value.isupper() for value in ids), app.package


def test_dialogs_are_closed_by_what_apps_on_android_have() -> None:
    dialogs = load_dialogs()
    assert {"consent-google", "rate-me", "update-system", "sim-toolkit"} <= {dialog.name for dialog in dialogs}
    for dialog in dialogs:
        selectors = [*dialog.when, dialog.tap]
        assert all(
            alternative.by not in {"css", "xpath"} for selector in selectors for alternative in selector.alternatives
        ), dialog.name


def test_wrong_dialogs(tmp_path: Path) -> None:
    path = tmp_path / "dialogs.yaml"
    path.write_text("dialogs:\n  rate:\n    title: Rate\n    seen: never\n    when: []\n    tapp: {text: No}\n")
    with pytest.raises(InputError) as caught:
        load_dialogs(path)
    assert str(caught.value).splitlines() == [
        f"{path}:2: dialogs.rate: key 'tap' is missing",
        f"{path}:5: dialogs.rate.when: empty: at least 1 needed",
        f"{path}:6: dialogs.rate: unknown key 'tapp'. Did you mean 'tap'? Allowed: packages, seen, tap, title, when",
    ]


def test_both_buttons_that_skip_an_advertisement_of_youtube_are_known() -> None:
    skip = load_android_app(SCENARIOS["youtube"].folder(), "youtube").elements["skip ad"]
    ids = [alternative.value.partition(":id/")[2] for alternative in skip.alternatives if alternative.by == "id"]
    assert {skip.value.partition(":id/")[2], *ids} == {"modern_skip_ad_button", "modern_skip_ad_text", "skip_ad_button"}
