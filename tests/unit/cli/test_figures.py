"""``mplab figures``: lists and draws figures, names the omitted ones, refuses unknown ones."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from mplab.analysis.errors import FigureError
from mplab.analysis.figures.stylefile import read_style
from mplab.analysis.pipeline import analyze
from mplab.cli.main import app, main
from tests.unit.analysis.report.test_report import Page
from tests.unit.analysis.synthetic import Synthetic, toy_scenario
from tests.unit.analysis.traces import Trace


def test_the_list_names_every_figure_and_what_it_is_drawn_after() -> None:
    assert "bytes-over-time" in CliRunner().invoke(app, ["figures", "--list"]).stdout
    listed = {f["name"]: f for f in json.loads(CliRunner().invoke(app, ["figures", "--list", "--json"]).stdout)}
    assert listed["waterfall"]["after"] == "han2015 fig. 5"
    assert listed["join-delay"]["in_report"] is True
    assert listed["overhead"]["in_report"] is False


def test_a_runs_figures_lie_in_its_folder(tmp_path: Path) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    result = CliRunner().invoke(app, ["figures", str(run), "--figure", "join-delay", "-f", "switches"])
    assert result.exit_code == 0, result.output
    assert (run / "figures" / "join-delay.svg").read_text().startswith("<?xml")
    assert (run / "figures" / "join-delay.csv").is_file()
    assert "switches is left out: no connection of 1 MB" in result.stderr


def test_a_folder_of_tables_will_do(tmp_path: Path) -> None:
    Trace().write(tmp_path / "tables")
    arguments = ["figures", str(tmp_path / "tables"), "-f", "rtt-samples", "-o", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert json.loads(result.stdout) == {
        "figures": [str(tmp_path / "out" / "rtt-samples.svg")],
        "left_out": [],
        "gallery": str(tmp_path / "out" / "index.html"),
    }


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run with a report; its scenario is registered until the tests of this file are done."""
    with toy_scenario(tmp_path_factory.mktemp("toy")):
        run = Synthetic(tmp_path_factory.mktemp("runs"), repetitions=3, labels=["1 MB"]).build()
        analyze(run)
        yield run


def draw(run: Path, folder: Path, *options: str) -> dict[str, Any]:
    """Draw the figures `gain` and `join-delay`; return the JSON that the command prints."""
    arguments = ["figures", str(run), "-f", "gain", "-f", "join-delay", "-o", str(folder), "--json", *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_figures_for_a_paper_have_the_size_and_the_fonts_that_were_asked_for(analysed: Path, tmp_path: Path) -> None:
    options = ("--format", "pdf", "--format", "png", "--width", "88mm", "--height", "5cm", "--font", "STIXGeneral")
    files = draw(analysed, tmp_path, *options)["figures"]
    assert [Path(file).name for file in files] == ["gain.pdf", "gain.png", "join-delay.pdf", "join-delay.png"]
    for file in files[::2]:
        content = Path(file).read_bytes()
        box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", content)
        assert box is not None
        assert [float(length) for length in box.groups()] == pytest.approx([88 / 25.4 * 72, 5 / 2.54 * 72], abs=0.1)
        assert b"/FontFile2" in content, "TrueType fonts are embedded"
        assert b"+STIXGeneral-Regular" in content
        assert b"/Type3" not in content
        assert b"CreationDate" not in content
    for file in files[1::2]:
        with Image.open(file) as picture:
            assert picture.size == pytest.approx((88 / 25.4 * 300, 5 / 2.54 * 300), abs=1)


@pytest.mark.long
def test_the_same_figures_have_the_same_bytes(analysed: Path, tmp_path: Path) -> None:
    kinds = ("--format", "svg", "--format", "pdf", "--format", "png", "--width", "3.5in")
    draw(analysed, tmp_path / "a", *kinds)
    draw(analysed, tmp_path / "b", *kinds)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(names) == 9
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_figures_without_options_are_those_of_the_report(analysed: Path, tmp_path: Path) -> None:
    draw(analysed, tmp_path)
    assert (tmp_path / "gain.svg").read_bytes() == (analysed / "report" / "figures" / "gain.svg").read_bytes()
    assert (tmp_path / "join-delay.csv").read_bytes() == (
        analysed / "report" / "data" / "trace-join-delay.csv"
    ).read_bytes()


def test_the_gallery_leads_to_every_file_and_loads_nothing(analysed: Path, tmp_path: Path) -> None:
    drawn = draw(analysed, tmp_path, "--format", "pdf", "-f", "switches", "--font-size", "7pt")
    page = Page(Path(drawn["gallery"]).read_text())
    assert page.open == []
    assert all(target.startswith("#") for target in page.loaded)
    files = [link for link in page.links if not link.startswith("#")]
    assert files == ["gain.pdf", "gain.csv", "join-delay.pdf", "join-delay.csv"]
    assert all((tmp_path / link).is_file() for link in files)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.identifiers)
    assert "switches: no connection of 1 MB" in page.text
    assert f"mplab figures {analysed.name} --figure gain --figure join-delay" in page.text
    assert "--width 6in --font-size 7pt" in page.text


def test_a_style_file_changes_the_figures(analysed: Path, tmp_path: Path) -> None:
    style = tmp_path / "paper.mplstyle"
    style.write_text(CliRunner().invoke(app, ["figures", "--show-style"]).stdout)
    draw(analysed, tmp_path / "same", "--style", str(style))
    assert (tmp_path / "same" / "gain.svg").read_bytes() == (analysed / "report" / "figures" / "gain.svg").read_bytes()
    style.write_text("# ours\naxes.labelcolor: #aa0000  # red\nfont.size: 12\n")
    draw(analysed, tmp_path / "other", "--style", str(style))
    changed = (tmp_path / "other" / "gain.svg").read_text()
    assert "#aa0000" in changed
    assert "11.333333px" in changed, "labels of ticks are scaled with font.size: 8.5 of 9"


def test_every_label_is_scaled_with_the_size_of_text(analysed: Path, tmp_path: Path) -> None:
    names = ("-f", "byte-share", "-f", "bytes-over-time", "-f", "nikravesh2016-fig18", "-f", "positions", "-f", "gain")
    files = [Path(file) for file in draw(analysed, tmp_path, "--font-size", "18pt", *names)["figures"]]
    assert {"byte-share-baseline", "bytes-over-time", "positions"} <= {file.stem for file in files}
    for file in files:
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: [^;\"]*?([0-9.]+)px", file.read_text())]
        assert sizes, file
        assert min(sizes) >= 18 * 8 / 9, file


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--width", "3.5"), "--width: found '3.5', a length with a unit is needed"),
        (("--width", "3.5ft"), "such as 3.5in, 88mm or 252pt"),
        (("--height", "1mm"), "--height: found '1mm', allowed: 25.4mm to 1016mm"),
        (("--font-size", "99pt"), "--font-size: found '99pt', allowed: 3pt to 40pt"),
        (("--font", "STIXGenral"), "font 'STIXGenral': not on this machine. Did you mean 'STIXGeneral'?"),
        (("--style", "nosuch"), "nosuch: cannot be read: No such file"),
        (("-f", "timesequence"), "no figure is called 'timesequence'. Did you mean 'time-sequence'?"),
    ],
)
def test_wrong_options_are_refused_before_a_figure_is_drawn(
    options: tuple[str, ...], words: str, analysed: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(app, ["figures", str(analysed), "-o", str(tmp_path / "out"), *options])
    assert words in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("font.sise: 9", "1: font.sise: not a parameter of figures. Did you mean 'font.size'?"),
        ("font.size: big", "1: font.size: Could not convert 'big' to float"),
        ("font.size 9", "1: found 'font.size 9', 'key: value' is needed"),
        ("text.usetex: True", "1: text.usetex: not a parameter of figures"),
        ("figure.hooks: os:system", "1: figure.hooks: not a parameter of figures"),
        ("backend: webagg", "1: backend: not a parameter of figures"),
    ],
)
def test_wrong_lines_of_a_style_file_are_refused_with_their_number(line: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "paper.mplstyle"
    file.write_text(f"{line}\n")
    with pytest.raises(FigureError, match=re.escape(f"{file}:{words}")):
        read_style(file)


def test_a_figure_too_small_for_its_labels_is_left_out(analysed: Path, tmp_path: Path) -> None:
    drawn = draw(analysed, tmp_path, "--width", "1in", "--height", "1in", "--font-size", "30pt")
    assert drawn["figures"] == []
    assert {item["reason"] for item in drawn["left_out"]} == {"1.0 × 1.0 inches are too small for its labels"}


def test_the_list_says_which_figures_are_in_the_report(analysed: Path, tmp_path: Path) -> None:
    listed = json.loads(CliRunner().invoke(app, ["figures", str(analysed), "--list", "--json"]).stdout)
    shown = {entry["name"]: entry["in_this_report"] for entry in listed}
    assert (shown["gain"], shown["box"], shown["join-delay"]) == (True, True, True)
    assert (shown["cdf"], shown["overhead"]) == (False, False), "few values have no distribution"
    text = CliRunner().invoke(app, ["figures", str(analysed), "--list"]).stdout
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert rows["cdf"].rstrip().endswith("no data")
    assert rows["join-delay"].rstrip().endswith("yes")
    nowhere = CliRunner().invoke(app, ["figures", "--list", "--runs", str(tmp_path)]).stdout
    assert "if it has data" in nowhere


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-f", "pie"], "no figure is called 'pie'. Figures: gain"),
        (["--cell", "nope"], "no ok cell is called 'nope'. Ok cells ("),
    ],
)
def test_what_does_not_exist_ends_with_2(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    monkeypatch.setattr("sys.argv", ["mplab", "figures", str(run), *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert words in capsys.readouterr().err
