"""The links of the manual lead to files and headings, its lines can be reviewed, and the site can be built."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.base.places import ROOT
from tests.manual import PAGES, SITE

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
_BLOCK = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)


def problems(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for target in SITE.links(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        missing = anchor and file.suffix == ".md" and anchor not in SITE.headings(file.read_text(encoding="utf-8"))
        if not file.exists() or missing:
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert problems(page) == []


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `title`\n\n[a](#a-title), [b](#b), [c](other.md), [d](page.md#d), [e](https://example.org)\n")
    assert problems(page) == ["#b", "other.md", "page.md#d"]


def test_every_page_of_the_repository_belongs_to_the_manual() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    of_others = re.compile(r"testdata|^\.github/")  # data of tests; forms of a code host
    assert {name for name in listed.stdout.split() if not of_others.search(name)} <= set(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_lines_of_text_have_at_most_120_columns(page: Path) -> None:
    """Exempt are code, pictures, and tables, whose rows cannot be wrapped: those by hand have at most 400 columns."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "!["))] == []
    if page.parent != ROOT / "docs" / "reference":
        shown = re.sub(r"\]\([^)]*\)", "]", text)
        assert [line for line in shown.splitlines() if len(line) > 400] == []


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "properdocs", "build", "--config-file", config, "--site-dir", site],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, where warnings are errors."""
    folder: Path = tmp_path_factory.mktemp("manual") / "site"
    done = build(ROOT / "properdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_all_pages_and_can_be_searched(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "readme/index.html", "docs/tutorial/index.html", "ARCHITECTURE/index.html"} <= pages
    assert len(pages) == len(PAGES) + len({"404.html"})
    assert '"title":"Install its packages"' in (site / "search" / "search_index.json").read_text(encoding="utf-8")


def test_code_in_a_list_is_shown_as_code(site: Path) -> None:
    text = (site / "docs" / "install" / "index.html").read_text(encoding="utf-8")
    items = re.findall(r"<li>\s*<p>(?:(?!</li>).)*<pre", text, re.DOTALL)
    assert len(items) == len(re.findall(r"^ +```\w", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE))
    for page in site.rglob("*.html"):
        assert "```" not in page.read_text(encoding="utf-8"), page


def test_a_pipe_in_code_in_a_table_is_shown_without_its_escape(site: Path) -> None:
    text = (site / "docs" / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "<td><code>--cross-check mptcptrace|tcptrace|tshark</code></td>" in text


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*", page.read_text(encoding="utf-8"))
        assert [tag for tag in loaded if "//" in tag] == [], page


def test_a_dead_anchor_is_an_error_of_the_site(tmp_path: Path) -> None:
    for name in ("docs", "experiments", "properdocs.yml"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "docs" / "index.md").write_text("# Manual\n\n[nowhere](tutorial.md#nowhere)\n", encoding="utf-8")
    done = build(tmp_path / "properdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "tutorial.md#nowhere" in done.stderr
