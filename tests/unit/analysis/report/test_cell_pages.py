"""The pages of cells and scenarios: complete, safe, the same each time, and every link leads somewhere."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html

from mplab.analysis.pipeline import analyze
from mplab.analysis.record import pageload
from mplab.analysis.record.pageload import MOST_BYTES, MOST_ENTRIES, PageLoad, page_loads
from mplab.analysis.record.run import read_run
from mplab.analysis.report.cellindex import INDEX
from mplab.analysis.report.cellpage import TAIL_LINES
from mplab.analysis.report.places import page_name
from mplab.analysis.report.waterfall import MOST_REQUESTS
from mplab.analysis.report.write import MOST_SECTIONS
from tests.unit.analysis.synthetic import PNG, Synthetic

ANNOYING = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e"
START = "2026-09-22T10:15:00.000Z"


def har(*entries: Mapping[str, Any], on_load: float = 900.0) -> dict[str, Any]:
    pages = [{"id": "1", "startedDateTime": START, "pageTimings": {"onContentLoad": 400.0, "onLoad": on_load}}]
    return {"log": {"version": "1.2", "pages": pages, "entries": list(entries)}}


def entry(url: str, started: str = START, **timings: float) -> dict[str, Any]:
    return {
        "startedDateTime": started,
        "request": {"method": "GET", "url": url},
        "response": {"status": 200, "httpVersion": "h2", "bodySize": 10, "_transferSize": 2000},
        "connection": "7",
        "timings": timings,
    }


def add_evidence(cell: Path, url: str = "https://www.search.lab/") -> None:
    """Give a cell what a page load leaves: a HAR file, a screenshot, logs, captures."""
    for folder in ("har", "screenshots", "logs"):
        (cell / folder).mkdir()
    load = entry(url, blocked=-1, dns=100, connect=150, ssl=50, send=0, wait=200, receive=300)
    (cell / "har" / "search-1.har").write_text(json.dumps(har(load)))
    (cell / "screenshots" / "end.png").write_bytes(PNG)
    (cell / "logs" / "agent.log").write_text("".join(f"line {number}\n" for number in range(100)))
    (cell / "logs" / "tls-keys.txt").write_text("CLIENT_RANDOM 00 11\n")
    (cell / "phone-wlan0.pcapng").touch()


class Links(HTMLParser):
    """Collects the targets of a page's links and of all that a browser would load, and the page's anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.references: list[str] = []
        self.anchors: set[str] = set()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in {"href", "xlink:href", "src", "srcset", "data", "action", "poster"} and value:
                reference = tag == "a" and value.startswith("https://")  # a reader can follow it; nothing loads it
                (self.references if reference else self.targets).append(value)
            if name == "id" and value:
                self.anchors.add(value)


def dead_links(run: Path) -> Iterator[str]:
    """Yield each link of a report that leads nowhere, or out of the run directory."""
    pages = {path.resolve(): Links(path.read_text()) for path in (run / "report").rglob("*.html")}
    assert pages
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = pages[place].anchors if place in pages else set()
            if parts.scheme or parts.netloc or not place.is_relative_to(run.resolve()):
                yield f"{page.name}: {target}: leaves the run"
            elif not place.exists() or (parts.fragment and parts.fragment not in known):
                yield f"{page.name}: {target}: nothing is there"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a page for each scenario, cells that do not count, a retried cell, and evidence in each cell."""

    def outcome(spec: Mapping[str, Any]) -> str:
        return {1: "failed", 2: "partial", 3: "missing", 4: "invalid"}.get(spec["index"], "ok")

    scenarios: list[dict[str, Any]] = [{"label": label, "name": "toy", "parameters": {}} for label in ("files", "more")]
    builder = Synthetic(
        tmp_path_factory.mktemp("whole"),
        repetitions=4,
        scenarios=scenarios,
        links=("baseline", "far"),
        labels=["1 MB"],
        outcome=outcome,
        retried=[7],
    )
    run = builder.build()
    for cell in (run / "cells").iterdir():
        add_evidence(cell)
    analyze(run)
    return run


def page_of(run: Path, outcome: str = "ok") -> str:
    cell = next(cell for cell in read_run(run).cells if cell.outcome == outcome)
    return (run / "report" / "cells" / f"{cell.id}.html").read_text()


def test_no_link_of_a_report_is_dead(whole: Path) -> None:
    assert list(dead_links(whole)) == []


def test_a_dead_link_is_found(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / whole.name
    shutil.copytree(whole, run)
    (run / "report" / "data" / "values.csv").unlink()
    index = run / "report" / "cells" / "index.html"
    index.write_text(index.read_text().replace('id="c1-t1"', ""))
    problems = {problem.partition(": ")[2] for problem in dead_links(run)}
    assert "data/values.csv: nothing is there" in problems
    assert any(problem.endswith("cells/index.html#c1-t1: nothing is there") for problem in problems)


def test_pages_run_nothing_and_load_only_files_of_the_run(whole: Path) -> None:
    for path in (whole / "report" / "cells").glob("0*.html"):
        links = Links(path.read_text())
        assert not links.tags & {"script", "iframe", "object", "embed", "form"}
        assert not {name for name in links.attributes if name.startswith("on")}


def test_every_cell_has_a_page_that_the_list_of_cells_links(whole: Path) -> None:
    cells = {f"{cell.id}.html" for cell in read_run(whole).cells}
    folder = whole / "report" / "cells"
    assert {path.name for path in folder.iterdir()} == {*cells, "index.html"}
    assert cells <= set(Links((folder / "index.html").read_text()).targets)


def test_the_first_page_links_cells_that_do_not_count_and_the_cells_of_each_median(whole: Path) -> None:
    first = Links((whole / "report" / "index.html").read_text()).targets
    bad = [cell.id for cell in read_run(whole).cells if not cell.ok]
    assert {f"cells/{cell}.html" for cell in bad} <= set(first)
    page = Links((whole / "report" / "scenarios" / "scenario-1.html").read_text()).targets
    assert {f"../cells/index.html#c{link}-t{number}" for link in (1, 2) for number in (1, 2, 3)} <= set(page)
    assert not any("#c3" in target for target in page)


def test_rows_of_links_budgets_and_contrasts_lead_to_their_cells(
    synthetic: Callable[..., Synthetic], no_figures: None
) -> None:
    scenarios: list[dict[str, Any]] = [{"label": label, "name": "toy", "parameters": {}} for label in ("a", "b")]
    budget = {"metric": "time", "at_most": {"text": "1 s", "value": 1, "unit": "s"}, "links": ["two"]}
    builder = synthetic(
        repetitions=3,
        labels=["1 MB"],
        scenarios=scenarios,
        links=["one", "two"],
        budgets=[budget],
        outcome=lambda spec: "invalid" if spec["index"] == 5 else "ok",
    )
    run = builder.build()
    analyze(run)
    page = html.fromstring((run / "report" / "index.html").read_text())

    def targets(path: str) -> list[list[str]]:
        return [row.xpath(".//a/@href") for row in page.xpath(f"{path}//tbody/tr")]

    bad = next(cell for cell in read_run(run).cells if not cell.ok)
    assert bad.spec is not None
    rows = targets("//section[@id='links']")
    assert {row[0] for row in rows} == {"cells/index.html#l1", "cells/index.html#l2"}
    assert {target for row in rows for target in row[1:]} == {f"cells/{bad.id}.html"}
    assert targets("//section[@id='budgets']") == [
        [f"cells/index.html#c{place}-t{transport}"] for place in (2, 4) for transport in (1, 2, 3)
    ]
    scenario = html.fromstring((run / "report" / "scenarios" / "scenario-1.html").read_text())
    contrasts = scenario.xpath("//table[contains(@class, 'wide')]//tbody/tr")
    assert contrasts
    assert all(len(row.xpath(".//a[contains(@href, 'cells/index.html#c')]")) == 2 for row in contrasts)
    places = html.fromstring((run / "report" / "cells" / "index.html").read_text())
    assert places.xpath("//p[@id='l2']/a/@href") == ["#c2", "#c4"]


def test_a_page_shows_the_evidence_of_its_cell(whole: Path) -> None:
    page = page_of(whole)
    for text in (
        "Download time",
        "cell_finished",
        "within",
        "GET https://www.search.lab/",
        "line 99",
        "Bytes per path",
    ):
        assert (text in page) is (text != "cell_finished")
    assert 'src="../../cells/' in page
    assert "line 80\n" not in page
    assert page.count("\nline ") <= TAIL_LINES
    assert "CLIENT_RANDOM" not in page
    assert "tls-keys" not in page
    assert "Not counted" in page_of(whole, "failed")
    assert "it was not run" in page_of(whole, "missing")


@pytest.mark.parametrize("links", [MOST_SECTIONS, MOST_SECTIONS + 1])
def test_a_long_run_has_a_page_for_each_scenario(
    synthetic: Callable[..., Synthetic], no_figures: None, links: int
) -> None:
    builder = synthetic(repetitions=1, labels=["1 MB"], links=[f"link-{number}" for number in range(links)])
    run = builder.build()
    analyze(run)
    pages = sorted(path.name for path in (run / "report").glob("scenarios/*"))
    assert pages == (["scenario-1.html"] if links > MOST_SECTIONS else [])
    first = (run / "report" / "index.html").read_text()
    assert ('href="scenarios/scenario-1.html"' in first) is bool(pages)
    assert ("scenario-1" in Links(first).anchors) is not bool(pages)


def test_pages_of_an_earlier_report_are_removed(synthetic: Callable[..., Synthetic], no_figures: None) -> None:
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    for name in ("scenarios/scenario-9.html", "cells/0099-old.html"):
        (run / "report" / name).parent.mkdir(parents=True)
        (run / "report" / name).touch()
    analyze(run)
    assert not (run / "report" / "scenarios" / "scenario-9.html").exists()
    assert not (run / "report" / "cells" / "0099-old.html").exists()


def test_folders_in_the_report_are_removed(synthetic: Callable[..., Synthetic], no_figures: None) -> None:
    run = synthetic(repetitions=1).build()
    for folder in ("cells", "scenarios", "figures", "data"):
        (run / "report" / folder / "mine" / "deep").mkdir(parents=True)
    analyze(run)
    assert not list((run / "report").rglob("mine"))


def test_no_cell_has_the_page_of_the_list_of_cells() -> None:
    assert len({page_name("index"), page_name("0001-web"), INDEX}) == 3


@pytest.mark.long
def test_the_same_run_gives_the_same_pages(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / whole.name
    shutil.copytree(whole, run, ignore=shutil.ignore_patterns("report"))
    analyze(run)
    pages = {path.relative_to(whole): path.read_bytes() for path in (whole / "report").rglob("*.html")}
    assert {path.relative_to(run): path.read_bytes() for path in (run / "report").rglob("*.html")} == pages


def test_texts_of_a_cell_are_only_text(synthetic: Callable[..., Synthetic], no_figures: None, tmp_path: Path) -> None:
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    cell = sorted((run / "cells").iterdir())[0]
    add_evidence(cell, url=f"https://www.search.lab/{ANNOYING}")
    (cell / "logs" / "agent.log").write_text(ANNOYING)
    secret = tmp_path / "secret"
    secret.write_text("the content of another file")
    (cell / "logs" / "linked.log").symlink_to(secret)
    (cell / "har" / "linked.har").symlink_to(secret)
    (cell / "screenshots" / "linked.png").symlink_to(secret)
    (cell / "logs" / '"><script>.log').write_text("x")
    record = json.loads((cell / "cell.json").read_text())
    record["proof"] = {"active": {ANNOYING: ANNOYING, "deep": [[["x"]]]}}
    record["captures"] = [{"file": "../../../secret.pcapng"}, {"file": '"><script>'}, {"file": "phone-wlan0.pcapng"}]
    record["warnings"] = [ANNOYING]
    (cell / "cell.json").write_text(json.dumps(record))
    analyze(run)
    text = (run / "report" / "cells" / f"{cell.name}.html").read_text()
    assert not Links(text).tags & {"script", "iframe"}
    assert "onerror" not in Links(text).attributes
    assert not {"\x1b", "\u202e"} & set(text)
    assert "the content of another file" not in text
    assert "linked" not in text
    assert not any("secret" in target for target in Links(text).targets)
    captures = {problem.split(": ")[1].rpartition("/")[2] for problem in dead_links(run)}
    assert captures == {"phone-wlan0.pcapng"}  # the records of the other cells list a capture that they lack


def loads_of(run: Path, content: object, name: str = "har/x.har") -> Sequence[PageLoad]:
    cell = sorted((run / "cells").iterdir())[0]
    (cell / name).parent.mkdir(exist_ok=True)
    (cell / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return page_loads(next(cell_ for cell_ in read_run(run).cells if cell_.id == cell.name))


def test_the_phases_of_a_request_are_those_of_the_har(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=1).build()
    later = entry("https://x.lab/2", "2026-09-22T10:15:00.250Z", receive=5)
    first = entry("https://x.lab/1", blocked=-1, dns=100, connect=150, ssl=50, send=0, wait=200, receive=300)
    (load,) = loads_of(run, har(later, first))
    assert [request.url for request in load.requests] == ["https://x.lab/1", "https://x.lab/2"]
    one, two = load.requests
    assert dict(one.phases) == {"dns": 100, "connect": 100, "ssl": 50, "wait": 200, "receive": 300}
    assert one.end_ms == 750
    assert (two.start_ms, two.size_bytes) == (250, 2000)
    assert load.marks == (("DOMContentLoaded", 400.0), ("Load", 900.0))
    assert load.end_ms == 900


def test_a_log_of_network_events_is_a_page_load(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=1).build()
    events = [
        {
            "method": "Network.requestWillBeSent",
            "params": {"requestId": "1", "request": {"url": "u"}, "timestamp": 5.0},
        },
        {"method": "Network.responseReceived", "params": {"requestId": "1", "response": {"status": 404}}},
        {"method": "Network.loadingFinished", "params": {"requestId": "1", "timestamp": 5.5, "encodedDataLength": 9}},
        {
            "method": "Network.requestWillBeSent",
            "params": {"requestId": "2", "request": {"url": "v"}, "timestamp": 5.2},
        },
        {"method": "Page.loadEventFired", "params": {"timestamp": 6.0}},
    ]
    (load,) = loads_of(run, events, "network/x.json")
    first, second = load.requests
    assert (first.url, first.status, first.size_bytes, first.phases) == ("u", 404, 9, (("load", 500.0),))
    assert second.start_ms == pytest.approx(200)
    assert second.phases == ()


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[" * 100_000,
        {"log": 5},
        har(entry("x", "yesterday")),
        har(entry("x", "0001-01-01T00:00:00Z")),
        har(entry("x", wait=1e300)),
        har(entry("x" * 200_000)),
        '{"log": {"entries": [{"startedDateTime": NaN}]}}',
    ],
)
def test_a_har_that_is_none_is_named_and_not_drawn(synthetic: Callable[..., Synthetic], content: object) -> None:
    run = synthetic(repetitions=1).build()
    (load,) = loads_of(run, content)
    assert (load.requests, load.problem) == ((), "not a log of a page load")


def test_a_large_har_is_not_read(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=1).build()
    loads_of(run, "{}")
    path = next(run.glob("cells/*/har/x.har"))
    with path.open("r+b") as file:
        file.truncate(MOST_BYTES + 1)
    cell = next(cell for cell in read_run(run).cells if cell.id == path.parent.parent.name)
    assert page_loads(cell)[0].problem == "not read: more than 32 MiB"


def test_the_requests_and_the_bytes_of_page_loads_are_limited(
    synthetic: Callable[..., Synthetic], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = read_run(synthetic(repetitions=1).build()).cells[0]
    assert cell.directory is not None
    (cell.directory / "har").mkdir()
    load = entry("https://www.search.lab/", wait=1)
    (cell.directory / "har" / "1.har").write_text(json.dumps(har(*[load] * (MOST_ENTRIES + 1))))
    for number in (2, 3):
        (cell.directory / "har" / f"{number}.har").write_text(json.dumps(har(load)))
    size = (cell.directory / "har" / "2.har").stat().st_size
    monkeypatch.setattr(pageload, "MOST_BYTES", 2 * size)
    monkeypatch.setattr(pageload, "MOST_BYTES_IN_ALL", int(1.5 * size))
    assert ["not read" in found.problem for found in page_loads(cell)] == [True, False, True]
    monkeypatch.undo()
    assert [found.problem for found in page_loads(cell)] == ["not a log of a page load", "", ""]


def test_a_page_draws_a_limited_number_of_requests(synthetic: Callable[..., Synthetic], no_figures: None) -> None:
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    loads_of(run, har(*(entry(f"https://x.lab/{number}", wait=1) for number in range(MOST_REQUESTS + 7))))
    analyze(run)
    text = (run / "report" / "cells" / f"{sorted((run / 'cells').iterdir())[0].name}.html").read_text()
    assert text.count('<span class="url">') == MOST_REQUESTS
    assert "7 more are in the file" in text


def test_a_damaged_table_hides_only_its_chart(synthetic: Callable[..., Synthetic], no_figures: None) -> None:
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    cell = next(cell for cell in read_run(run).cells if cell.directory is not None)
    assert cell.directory is not None
    (cell.directory / "tables" / "points.parquet").write_bytes(b"x")
    analyze(run)
    text = (run / "report" / "cells" / f"{cell.id}.html").read_text()
    assert "A chart of the traces cannot be drawn: TablesError." in text
    assert "Links, requested and measured" in text
