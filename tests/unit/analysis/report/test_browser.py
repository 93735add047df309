"""The report in real browsers: nothing is cut, tables sort, keyboard and screen readers reach everything."""

from collections.abc import Iterator

import pytest

from mplab.analysis.figures.catalog import write_figures
from mplab.analysis.figures.run_traces import traces_of
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import read_run
from mplab.analysis.report.chart import report_links
from mplab.analysis.report.comparepage import compare_page
from mplab.analysis.report.gallery import gallery
from mplab.analysis.report.trendpage import trend_page
from mplab.analysis.results.frames import Results
from mplab.analysis.verdicts.compare import compare
from mplab.analysis.verdicts.gate import checks
from mplab.analysis.verdicts.trend import histories, shifts
from mplab.base.programs import CHROMIUM, FIREFOX
from tests.pages import (
    WIDTHS,
    ChromiumPage,
    PageBrowser,
    chromium_page,
    firefox_page,
    needs_axe,
    overflow,
    tab_stops,
    violations,
)
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

pytestmark = pytest.mark.long
OPEN = "document.querySelectorAll('details').forEach(details => { details.open = true; });"
FIRST_TABLE = "const table = document.querySelector('section[id^=scenario] table');"
COLUMN = FIRST_TABLE + (
    "const at = [...table.tHead.rows[0].cells].findIndex(head => head.textContent.includes('median'));"
    "return [...table.tBodies[0].rows].map(row => row.cells[at].textContent.trim());"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run with several labels, transports, a failed cell and a retried one."""
    folder = tmp_path_factory.mktemp("browser")
    labels = ["10 kB", "100 kB", "1 MB", "10 MB"]
    builder = Synthetic(
        folder,
        repetitions=5,
        labels=labels,
        outcome=lambda c: "failed" if c["index"] == 4 else "ok",
        retried=(5,),
    )
    run = builder.build()
    with toy_scenario(folder / "toy"):
        analyze(run)
    return (run / "report" / "index.html").as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[ChromiumPage]:
    if CHROMIUM.find() is None:
        pytest.skip("no Chromium")
    with chromium_page() as page:
        yield page


@pytest.fixture(scope="module")
def firefox() -> Iterator[PageBrowser]:
    if FIREFOX.find() is None:
        pytest.skip("no Firefox")
    with firefox_page() as page:
        yield page


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> PageBrowser:
    page: PageBrowser = request.getfixturevalue(request.param)
    return page


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(browser: PageBrowser, url: str, width: int) -> None:
    browser.show(url, width=width)
    assert overflow(browser) == []
    browser.run(OPEN)
    assert overflow(browser) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_without_scripts_all_is_there(chromium: ChromiumPage, url: str, width: int) -> None:
    chromium.show(url, width=width, scripts=False)
    assert chromium.run("return document.querySelectorAll('button').length;") == 0
    chromium.run(OPEN)
    assert overflow(chromium) == []
    hidden = "return [...document.querySelectorAll('main td')].filter(cell => !cell.checkVisibility()).length;"
    assert chromium.run(hidden) == 0


def test_a_table_that_scrolls_is_reached_by_keyboard_and_shows_it(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=420)
    browser.run(OPEN)
    box = FIRST_TABLE + "const box = table.closest('.scroll');"
    assert browser.run(box + "return box.scrollWidth > box.clientWidth && box.tabIndex === 0;")
    assert "gradient" in browser.run(box + "return getComputedStyle(box).backgroundImage;")
    assert browser.run(box + "box.scrollLeft = 9999; return box.scrollLeft > 0;")


def test_the_table_of_a_headline_metric_fits_a_wide_window(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=1300)
    browser.run(OPEN)
    box = FIRST_TABLE + "const box = table.closest('.scroll');"
    assert browser.run(box + "return box.scrollWidth <= box.clientWidth;")


def test_figures_fit_the_window_or_scroll_and_their_text_can_be_read(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=420)
    browser.run(OPEN)
    boxes = (
        "return [...document.querySelectorAll('figure .drawing')].map(box => ["
        "box.getBoundingClientRect().right, box.scrollWidth > box.clientWidth, box.tabIndex === 0]);"
    )
    assert {(right <= 420, scrolls, stop) for right, scrolls, stop in browser.run(boxes)} == {(True, True, True)}
    sizes = (
        "return [...document.querySelectorAll('figure svg text')].map(text => { const m = text.getScreenCTM();"
        "return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(m.a, m.b); });"
    )
    assert min(browser.run(sizes)) >= 9


def test_printed_tables_fit_a4_with_text_of_seven_points(chromium: ChromiumPage, url: str) -> None:
    chromium.show(url, width=688)  # A4 without margins
    chromium.session.command("Emulation.setEmulatedMedia", media="print")
    try:
        chromium.run(OPEN)
        cells = (
            "[...document.querySelectorAll('main td, main th, main td *, main th *')].filter(e => e.checkVisibility())"
        )
        sizes = chromium.run(f"return {cells}.map(cell => parseFloat(getComputedStyle(cell).fontSize) * 0.75);")
        assert min(sizes) >= 6.99
        assert chromium.run(f"return {cells}.filter(cell => cell.getBoundingClientRect().right > 689).length;") == 0
    finally:
        chromium.session.command("Emulation.setEmulatedMedia", media="")


def test_columns_sort_in_both_directions_and_back(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=1300)
    before = browser.run(COLUMN)
    press = FIRST_TABLE + "[...table.querySelectorAll('.sort')].find(b => b.textContent.includes('median')).click();"
    state = FIRST_TABLE + "return table.querySelector('[aria-sort]')?.getAttribute('aria-sort') ?? '';"
    seen = []
    for _ in range(3):
        browser.run(press)
        seen.append((browser.run(state), browser.run(COLUMN)))
    numbers = sorted(before, key=float)
    assert before != numbers
    assert [(way, [float(text) for text in texts]) for way, texts in seen] == [
        ("ascending", [float(text) for text in numbers]),
        ("descending", [float(text) for text in reversed(numbers)]),
        ("", [float(text) for text in before]),
    ]


def test_a_long_table_is_filtered(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=1300)
    browser.run(OPEN)
    script = (
        "const input = document.querySelector('.filter input'); input.value = 'lte';"
        "input.dispatchEvent(new Event('input'));"
        "const rows = [...input.closest('.filter').nextElementSibling.querySelectorAll('tbody tr')];"
        "return rows.map(row => [row.textContent.toLowerCase().includes('lte'), row.checkVisibility()]);"
    )
    rows = browser.run(script)
    assert len({matches for matches, _ in rows}) == 2
    assert all(matches == visible for matches, visible in rows)


def test_keys_reach_all_controls(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=1300)
    for start in ("Expand all", "Collapse all", "verdict", "data (CSV)", "All numbers", "More metrics"):
        assert tab_stops(browser, lambda text, start=start: text.startswith(start)), start  # type: ignore[misc]


def test_enter_opens_all_and_sorts(browser: PageBrowser, url: str) -> None:
    browser.show(url, width=1300)
    for name, opened in (("Expand all", True), ("Collapse all", False)):
        assert tab_stops(browser, lambda text, name=name: text == name)  # type: ignore[misc]
        browser.press("Enter")
        states = browser.run("return [...document.querySelectorAll('main details')].map(details => details.open);")
        assert set(states) == {opened}
    assert tab_stops(browser, lambda text: text == "verdict")
    browser.press("Enter")
    assert browser.run("return document.querySelector('main table [aria-sort]') !== null;")
    assert tab_stops(browser, lambda text: text.startswith("More metrics"))
    browser.press("Enter")
    assert browser.run("return document.activeElement.parentElement.open;")


def test_a_link_to_a_folded_source_opens_it(browser: PageBrowser, url: str) -> None:
    browser.show(url + "#source-westfall-young-1993", width=1300)
    assert browser.run("return document.getElementById('source-westfall-young-1993').checkVisibility();")


def test_figures_are_dark_on_a_dark_page(chromium: ChromiumPage, url: str) -> None:
    colours = {}
    for dark in (False, True):
        chromium.show(url, width=1300, dark=dark)
        colours[dark] = chromium.run(
            "const [text, page] = ['figure svg text', '.drawing'].map(one => document.querySelector(one));"
            "return [getComputedStyle(text).fill, getComputedStyle(page).backgroundColor];"
        )
    assert colours[False][1] == "rgb(255, 255, 255)"
    assert set(colours[False]).isdisjoint(colours[True])


@needs_axe
@pytest.mark.parametrize(("width", "dark"), [(1300, False), (420, True)])
def test_chromium_has_no_serious_violation(chromium: ChromiumPage, url: str, width: int, dark: bool) -> None:
    chromium.show(url, width=width, dark=dark)
    assert violations(chromium) == []
    chromium.run(OPEN)
    assert violations(chromium) == []


@needs_axe
def test_a_dark_firefox_has_no_serious_violation(url: str) -> None:
    if FIREFOX.find() is None:
        pytest.skip("no Firefox")
    with firefox_page(dark=True) as page:
        page.show(url, width=420, dark=True)
        assert overflow(page) == []
        page.run(OPEN)
        assert violations(page) == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Kind of page → URL, for the pages on several runs and the gallery of figures; a transport became slower."""
    folder = tmp_path_factory.mktemp("pages")
    with toy_scenario(folder / "toy"):
        builders = [Synthetic(folder, day=day, slower={"mptcp": 1.0 if day < 7 else 1.4}) for day in range(1, 12)]
        directories = [builder.build() for builder in builders]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
            for directory in directories:
                analyze(directory)
    runs = [read_run(directory) for directory in directories]
    compared = compare(runs[:1], runs[-1])
    past = histories(Results(tuple(runs)), "demo")
    links = report_links(folder / "x.html", runs)
    names = ["join-delay", "switches", "rtt-mean", "connection-bytes", "subflow-count"]
    written, left_out = write_figures(
        traces_of(runs[0]),
        names,
        folder / "figures",
    )
    texts = {
        "compare": compare_page(compared, checks(compared, past), tuple(shifts(past)), links),
        "trend": trend_page("demo", past, runs[0].transports, links),
        "figures/gallery": gallery("demo", written, left_out, "mplab figures demo " * 20, 3.5),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name.rpartition("/")[2]: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.mark.parametrize("name", ["compare", "trend", "gallery"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_on_several_runs_fit_the_window(
    browser: PageBrowser, pages: dict[str, str], name: str, width: int
) -> None:
    browser.show(pages[name], width=width)
    browser.run(OPEN)
    assert overflow(browser) == []


@pytest.mark.parametrize("name", ["compare", "trend", "gallery"])
def test_tables_of_pages_on_several_runs_are_sorted(browser: PageBrowser, pages: dict[str, str], name: str) -> None:
    browser.show(pages[name], width=1300)
    browser.run(OPEN)
    column = (
        "const first = table => [...table.tBodies[0].rows].map(row => row.cells[0].textContent);"
        "const table = [...document.querySelectorAll('main table')].find(one => new Set(first(one)).size > 2);"
    )
    press = "table.querySelector('.sort').click();"
    seen = [browser.run(f"{column} {press} return first(table);") for _ in range(2)]
    assert seen[0] == seen[1][::-1]
    assert len(set(seen[0])) > 1


def test_marks_of_a_trend_are_links_with_the_values_at_their_places(
    browser: PageBrowser, pages: dict[str, str]
) -> None:
    browser.show(pages["trend"], width=420)
    marks = browser.run(
        "return [...document.querySelectorAll('.chart a')].map(a => [a.querySelector('title').textContent, "
        "a.querySelector('.mark path').getBoundingClientRect().left, a.getAttribute('href')]);"
    )
    assert len(marks) == 11 * 3 * 3, "runs, transports, sizes"
    own = [(left, href) for title, left, href in marks if title.startswith("Multipath TCP")][:11]
    assert own == sorted(own), "the newest run is at the right end"
    assert own[0][0] >= 0
    assert own[-1][0] <= 420


@needs_axe
@pytest.mark.parametrize("name", ["compare", "trend", "gallery"])
@pytest.mark.parametrize(("width", "dark"), [(1300, False), (420, True)])
def test_pages_on_several_runs_have_no_serious_violation(
    chromium: ChromiumPage, pages: dict[str, str], name: str, width: int, dark: bool
) -> None:
    chromium.show(pages[name], width=width, dark=dark)
    chromium.run(OPEN)
    assert violations(chromium) == []
