"""In a real browser: pages update themselves, fit the window, work without JavaScript; reports are locked up."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mplab.base.polling import wait_until
from mplab.base.programs import CHROMIUM, FIREFOX
from tests.pages import ChromiumPage, chromium_page, firefox_page, needs_axe, overflow, violations
from tests.unit.dashboard.lab import CAMPAIGN, Client, Folders, client
from tests.unit.dashboard.test_live import status_of_stream

pytestmark = [pytest.mark.long, pytest.mark.skipif(CHROMIUM.find() is None, reason="no Chromium")]
PAGES = ("/", "/runs", "/runs/{run}", f"/campaigns/{CAMPAIGN}", "/search?q=files", "/search", "/runs/trend-demo.html")
HOSTILE = """<!DOCTYPE html><html lang="en"><title>report</title><link rel="stylesheet" href="style.css"><h1>Report</h1>
<script>
(async () => {
  const tried = {style: getComputedStyle(document.querySelector("h1")).color};
  for (const [name, attempt] of Object.entries({
    cookie: () => document.cookie,
    storage: () => localStorage.length,
    fetch: () => fetch("/status.json").then(answer => answer.text()),
    absolute: () => fetch(new URL("/status.json", location.href), {credentials: "include"}).then(a => a.text()),
    frame: () => new Promise((resolve, reject) => {
      const frame = document.createElement("iframe");
      frame.onload = () => { try { resolve(frame.contentDocument.title); } catch (e) { reject(e); } };
      frame.src = "/"; document.body.append(frame);
      setTimeout(() => reject(new Error("late")), 3000);
    }),
  })) {
    try { tried[name] = `got ${await attempt()}`; } catch (error) { tried[name] = "refused"; }
  }
  window.tried = tried;
})();
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[ChromiumPage]:
    with chromium_page() as page:
        page.session.command("Log.enable")
        yield page


def show(browser: ChromiumPage, url: str, *, width: int = 1300, dark: bool = False, scripts: bool = True) -> None:
    """Load a page, and wait until it is shown: a load event can be that of the page before."""
    browser.show(url, width=width, dark=dark, scripts=scripts)
    there = f"return location.href === {json.dumps(url)} && document.readyState === 'complete';"
    assert wait_until(partial(browser.run, there), 30, interval_s=0.05), url


def errors(browser: ChromiumPage) -> list[str]:
    """Return the errors that the browser has logged since the page was loaded, such as refused scripts."""
    browser.run("return 0")
    entries = [event["params"]["entry"] for event in browser.session.events() if event["method"] == "Log.entryAdded"]
    return [entry["text"] for entry in entries if entry["level"] == "error"]


@pytest.fixture
def served(folders: Folders) -> Iterator[Client]:
    folders.ended()
    folders.ended(23)
    folders.night()
    with client(folders.path) as answers:
        yield answers


def test_a_finished_cell_appears_without_a_reload(folders: Folders, served: Client, browser: ChromiumPage) -> None:
    run = folders.running()
    with folders.held(run):
        for path, there in {
            f"/runs/{run}": "return document.getElementById('cell-CELL') !== null;",
            "/": "return document.getElementById('running').textContent.includes('7 ok, 1 invalid of 20');",
        }.items():
            show(browser, f"{served.served.url}{path[1:]}", width=1300)
            browser.run("window.loadedOnce = true; [...document.querySelectorAll('a:not(.skip)')].at(-1).focus();")
            cell = folders.finish_cell(run, 7 if path != "/" else 8)
            script = there.replace("CELL", cell)
            assert wait_until(partial(browser.run, script), 30, interval_s=0.2)
            assert browser.run("return window.loadedOnce;") is True
            assert browser.run("return document.activeElement.tagName;") == "A"
            assert errors(browser) == []


def test_updates_can_be_paused(folders: Folders, served: Client, browser: ChromiumPage) -> None:
    run = folders.running()
    with folders.held(run):
        show(browser, f"{served.served.url}runs/{run}", width=1300)
        browser.run("document.querySelector('.live button').click();")
        assert browser.run("return document.getElementById('live').textContent;") == "Updates are paused."
        cell = folders.finish_cell(run)
        seen = f"return document.getElementById('cell-{cell}') !== null;"
        assert not wait_until(lambda: browser.run(seen), 4, interval_s=0.5)
        browser.run("document.querySelector('.live button').click();")
        assert wait_until(lambda: browser.run(seen), 30, interval_s=0.2)


def test_a_hidden_page_has_no_connection(
    folders: Folders, served: Client, browser: ChromiumPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.dashboard.live.MOST_CLIENTS", 1)
    run = folders.running()
    text = "return document.getElementById('live').textContent;"
    hide = (
        "Object.defineProperty(document, 'hidden', {value: VALUE, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    with folders.held(run):
        show(browser, f"{served.served.url}runs/{run}", width=1300)
        assert wait_until(lambda: browser.run(text) == "Updates live.", 30, interval_s=0.1)
        assert status_of_stream(served) == 503
        browser.run(hide.replace("VALUE", "true"))
        assert wait_until(lambda: status_of_stream(served) == 200, 60, interval_s=0.1)
        monkeypatch.setattr("mplab.dashboard.live.MOST_CLIENTS", 32)
        cell = folders.finish_cell(run)
        browser.run(hide.replace("VALUE", "false"))
        seen = f"return document.getElementById('cell-{cell}') !== null;"
        assert wait_until(lambda: browser.run(seen), 30, interval_s=0.2)


@pytest.mark.skipif(FIREFOX.find() is None, reason="no Firefox")
def test_firefox_updates_pages(folders: Folders, served: Client) -> None:
    run = folders.running()
    with folders.held(run), firefox_page() as firefox:
        firefox.show(f"{served.served.url}runs/{run}", width=1300)
        firefox.run("window.loadedOnce = true;")
        cell = folders.finish_cell(run)
        seen = f"return document.getElementById('cell-{cell}') !== null && window.loadedOnce === true;"
        assert wait_until(lambda: firefox.run(seen), 30, interval_s=0.2)
        assert overflow(firefox) == []


@pytest.mark.parametrize("width", [420, 1300])
def test_pages_fit_the_window_and_obey_their_own_policy(
    folders: Folders, served: Client, browser: ChromiumPage, width: int
) -> None:
    run = folders.running()
    for path in PAGES:
        show(browser, f"{served.served.url}{path[1:].format(run=run)}", width=width)
        assert overflow(browser) == [] or "trend" in path, path
        assert errors(browser) == [], path


@needs_axe
@pytest.mark.parametrize("width", [420, 1300])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(
    folders: Folders, served: Client, browser: ChromiumPage, width: int, dark: bool
) -> None:
    run = folders.running()
    for path in PAGES[:-1]:
        show(browser, f"{served.served.url}{path[1:].format(run=run)}", width=width, dark=dark)
        assert violations(browser) == [], path


def test_pages_are_complete_without_scripts(folders: Folders, served: Client, browser: ChromiumPage) -> None:
    run = folders.running()
    text = "return document.querySelector('main').innerText;"
    for path in PAGES:
        url = f"{served.served.url}{path[1:].format(run=run)}"
        show(browser, url, width=1300, scripts=False)
        without = browser.run(text)
        show(browser, url, width=1300)
        assert without.split() == browser.run(text).split(), path
    show(browser, served.served.url, width=1300, scripts=False)
    assert "reload it" in browser.run("return document.querySelector('noscript').innerText;")


def test_a_report_runs_its_script_but_reaches_nothing(folders: Folders, browser: ChromiumPage, tmp_path: Path) -> None:
    name = folders.ended()
    report = folders.runs / name / "report"
    (report / "index.html").write_text(HOSTILE)
    (report / "style.css").write_text("h1 { color: rgb(1, 2, 3); }")
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("a-token-for-this-test")
    for options in ({}, {"token_file": file}):
        with client(folders.path, **options) as answers:
            browser.show(answers.served.first_url, width=1300)
            title = "return document.title.includes('Nothing is running');"
            assert wait_until(partial(browser.run, title), 30, interval_s=0.2)
            browser.show(f"{answers.served.url}runs/{name}/report/index.html", width=1300)
            assert wait_until(lambda: browser.run("return window.tried !== undefined;"), 30, interval_s=0.2)
            tried = json.loads(browser.run("return JSON.stringify(window.tried);"))
            assert tried.pop("style") == "rgb(1, 2, 3)"
            assert set(tried.values()) == {"refused"}, tried
            assert len(tried) == 5
