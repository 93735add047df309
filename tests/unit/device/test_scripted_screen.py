"""Scripted apps: screens, touches, typing, dialogs, and programs that do real work."""

import http.server
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mplab.base.hierarchy import UiNode, parse_hierarchy
from mplab.device.apps import ready_apps
from mplab.device.screen import ScriptedScreen, load_script

pytestmark = pytest.mark.long

NOTES = """
package: com.example.notes
title: Notes
activities: {.MainActivity: list, VIEW: linked}
variables: {draft: "", state: idle, percent: "0"}
lists: {notes: []}
kept: [notes]
dialogs:
  rate: {after: 5 s, starts: 2, on: [list], widgets: [{class: Button, text: Later, tap: {close: true}}]}
screens:
  list:
    after: {30 s: {go: asleep}}
    widgets:
      - class: ListView
        id: all
        scrollable: true
        height: 500
        children: [{id: note, text: "{text}", repeat: notes, tap: {set: {item.text: "{text}!"}}}]
      - {id: add, class: Button, description: New note, tap: {go: edit}}
      - {id: count, class: Button, text: "{percent}", tap: {add: {percent: 2}}}
      - {id: off, class: Button, text: Off, enabled: {state: on}, tap: {go: asleep}}
      - {id: work, class: Button, text: Work, tap: [{set: {state: working}}, {run: {command: [sh, -c, "WORK"],
         progress: '(?P<percent>[0-9]+)%', done: {set: {state: done}}, failed: {set: {state: "failed: {error}"}}}}]}
      - {id: status, text: "{state} {percent}"}
  edit:
    back: [{append: {notes: {text: "{draft}"}}}, {set: {draft: ""}}, {go: list}, {toast: Saved}]
    widgets:
      - {id: body, class: EditText, hint: Write here, input: draft, enter: {go: list}}
  linked:
    widgets: [{text: "{data}"}]
  asleep:
    widgets: [{text: Zzz}]
"""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Notes:
    """A screen with the app above, and short methods for actions on it."""

    def __init__(self, folder: Path, work: str = "exit 0") -> None:
        path = folder / "notes.yaml"
        path.write_text(NOTES.replace("WORK", work))
        self.clock = Clock()
        self.screen = ScriptedScreen([load_script(path)], clock=self.clock)
        self.screen.start("com.example.notes", "")

    def nodes(self) -> list[UiNode]:
        return list(parse_hierarchy(self.screen.current())[0].walk())

    def texts(self) -> list[str]:
        return [node.label for node in self.nodes() if node.label]

    def find(self, name: str) -> UiNode:
        return next(
            node for node in self.nodes() if name in {node.resource_id.partition("/")[2], node.text, node.description}
        )

    def tap(self, name: str) -> None:
        self.screen.tap(*self.find(name).bounds.center)

    def add(self, text: str) -> None:
        self.tap("add")
        self.tap("body")
        self.screen.text(text)
        self.screen.key("BACK")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def eventually(holds: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_home_screen_has_icons_that_start_apps(notes: Notes) -> None:
    notes.screen.key("HOME")
    assert notes.screen.focus()[0] == "com.android.launcher3"
    notes.tap("Notes")
    assert notes.screen.focus() == ("com.example.notes", ".MainActivity")


def test_what_is_typed_is_shown_and_kept_until_the_app_is_cleared(notes: Notes) -> None:
    notes.tap("add")
    field = notes.find("body")
    assert (field.text, field.hint, "focused" in field.flags) == ("Write here", "Write here", False)
    notes.tap("body")
    notes.screen.text("Milk & <bread>x")
    notes.screen.key("DEL")
    assert notes.find("body").text == "Milk & <bread>"
    assert "focused" in notes.find("body").flags
    notes.screen.key("BACK")
    assert notes.screen.toast() == "Saved"
    assert "Milk & <bread>" in notes.texts()
    notes.screen.stop("com.example.notes")
    notes.screen.start("com.example.notes", ".MainActivity")
    assert "Milk & <bread>" in notes.texts()
    notes.screen.clear("com.example.notes")
    notes.screen.start("com.example.notes", "com.example.notes.MainActivity")
    assert "Milk & <bread>" not in notes.texts()


def test_each_entry_of_a_list_can_be_touched_by_itself(notes: Notes) -> None:
    notes.add("one")
    notes.add("two")
    notes.tap("two")
    assert [text for text in notes.texts() if text in {"one", "two", "one!", "two!"}] == ["one", "two!"]


def test_what_is_scrolled_away_is_not_there(notes: Notes) -> None:
    for number in range(12):
        notes.add(f"note {number}")
    assert "note 11" not in notes.texts()
    area = notes.find("all").bounds
    x, y = area.center
    for _ in range(5):
        notes.screen.swipe(x, y + 200, x, y - 200, 200)
    shown = [node for node in notes.nodes() if node.text.startswith("note ")]
    assert shown[-1].text == "note 11"
    assert all(node.bounds.top >= area.top and node.bounds.bottom <= area.bottom for node in shown)


def test_numbers_add_up_and_what_is_not_enabled_does_nothing(notes: Notes) -> None:
    notes.tap("count")
    notes.tap("count")
    notes.tap("off")
    assert notes.find("count").text == "4"
    assert "enabled" not in notes.find("off").flags


def test_time_opens_another_screen(notes: Notes) -> None:
    notes.clock.now += 29
    assert "Zzz" not in notes.texts()
    notes.clock.now += 2
    assert "Zzz" in notes.texts()


def test_dialog_comes_at_its_start_and_once_only(notes: Notes) -> None:
    def restarted() -> None:
        notes.screen.stop("com.example.notes")
        notes.screen.start("com.example.notes", "")
        notes.clock.now += 6

    notes.clock.now += 6
    assert "Later" not in notes.texts()
    restarted()
    assert notes.texts() == ["Later"]
    notes.tap("Later")
    assert "Work" in notes.texts()
    restarted()
    assert "Later" not in notes.texts()


def test_link_opens_its_screen_with_its_data(notes: Notes) -> None:
    notes.screen.open("com.example.notes", "https://example.com/1")
    assert "https://example.com/1" in notes.texts()
    with pytest.raises(KeyError, match=r"no activity \.Other"):
        notes.screen.start("com.example.notes", ".Other")
    notes.screen.start("com.example.other", "")
    assert notes.screen.focus() == ("com.example.other", ".MainActivity")


def test_program_moves_the_app(tmp_path: Path) -> None:
    notes = Notes(tmp_path, "printf '10%%\\r55%%\\r'; cat go >/dev/null; printf '99%%\\n'")
    notes.screen = ScriptedScreen(
        [load_script(tmp_path / "notes.yaml")], enter=lambda: ["env", "-C", str(tmp_path)], clock=notes.clock
    )
    notes.screen.start("com.example.notes", "")
    os.mkfifo(tmp_path / "go")
    notes.tap("work")
    eventually(lambda: notes.find("status").text == "working 55")
    (tmp_path / "go").write_text("now")
    eventually(lambda: notes.find("status").text == "done 99")


def test_program_that_fails_says_why(tmp_path: Path) -> None:
    notes = Notes(tmp_path, "echo no route to host; exit 7")
    notes.tap("work")
    eventually(lambda: notes.find("status").text == "failed: no route to host 0")


def test_program_ends_with_its_app(tmp_path: Path) -> None:
    notes = Notes(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 1000")
    notes.tap("work")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    pid = (tmp_path / "pid").read_text().strip()
    notes.screen.reboot()
    assert not Path(f"/proc/{pid}").exists()


class _Store(http.server.BaseHTTPRequestHandler):
    received: dict[str, bytes]

    def do_PUT(self) -> None:
        self.received[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()

    def do_GET(self) -> None:
        body = bytes(200_000)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def store() -> Iterator[tuple[str, dict[str, bytes]]]:
    received: dict[str, bytes] = {}
    handler = type("Store", (_Store,), {"received": received})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", received
        server.shutdown()
        thread.join()


class Ready(Notes):
    """A screen with the apps that mplab provides."""

    def __init__(self, folder: Path, url: str) -> None:
        downloads = folder / "Download"
        downloads.mkdir()
        (downloads / "photo.bin").write_bytes(b"x" * 300_000)
        self.clock = Clock()
        self.screen = ScriptedScreen(
            ready_apps(),
            clock=self.clock,
            folder=lambda name: downloads if name == "/sdcard/Download" else None,
            variables={"dropbox": url, "messenger": url, "video": url, "rate": "800", "ahead": "0.5"},
        )


@pytest.fixture
def ready(tmp_path: Path, store: tuple[str, dict[str, bytes]]) -> Iterator[Ready]:
    apps = Ready(tmp_path, store[0])
    yield apps
    apps.screen.reboot()


def test_upload_arrives(ready: Ready, store: tuple[str, dict[str, bytes]]) -> None:
    ready.screen.start("com.dropbox.android", "")
    ready.tap("Create")
    ready.tap("Upload files")
    assert ready.screen.focus()[0] == "com.google.android.documentsui"
    ready.tap("photo.bin")
    eventually(lambda: "Uploaded photo.bin" in ready.texts())
    assert store[1] == {"/files/photo.bin?offset=0": b"x" * 300_000}
    assert "Uploaded" in ready.texts()


def test_page_loads_or_says_why_not(ready: Ready, store: tuple[str, dict[str, bytes]]) -> None:
    ready.screen.start("org.mozilla.firefox", "")
    ready.tap("toolbar")
    ready.tap("mozac_browser_toolbar_edit_url_view")
    ready.screen.text(store[0])
    ready.screen.key("ENTER")
    eventually(lambda: any(text.startswith("Loaded 200000 bytes") for text in ready.texts()))
    ready.screen.open("org.mozilla.firefox", "http://127.0.0.1:1/")
    eventually(lambda: "The address wasn’t understood" in ready.texts())


def test_video_buffers_plays_and_ends(ready: Ready) -> None:
    ready.screen.start("com.google.android.youtube", "")
    seen: list[str] = []

    def ended() -> bool:
        seen.extend(ready.texts())
        return "Replay video" in seen

    ready.tap("First clip")
    eventually(ended)
    assert "Loading" in seen
    assert {"0:00", "0:01"} <= set(seen)


def test_message_without_a_connection_is_not_sent(ready: Ready) -> None:
    ready.screen.start("com.facebook.orca", "")
    eventually(lambda: "Waiting for network…" in ready.texts())
    ready.tap("Second phone")
    ready.tap("text_composer")
    ready.screen.text("Hello")
    ready.tap("Send")
    eventually(lambda: "Not sent" in ready.texts())
    assert "Hello" in ready.texts()


def test_message_of_the_system_comes_over_any_app(ready: Ready) -> None:
    ready.screen.start("com.dropbox.android", "")
    ready.screen.pop_up("com.android.systemui", "sim")
    assert ready.screen.focus()[0] == "com.android.stk"
    ready.tap("OK")
    assert ready.screen.focus()[0] == "com.dropbox.android"
    with pytest.raises(KeyError, match="no dialog other"):
        ready.screen.pop_up("com.android.systemui", "other")
