"""``mplab report``: the report as PDF."""

import re
from pathlib import Path

import pytest

from mplab.analysis.pipeline import analyze
from mplab.base.programs import CHROMIUM
from mplab.cli.main import main
from mplab.cli.verbs.results.report import write_pdf
from tests.unit.analysis.synthetic import Synthetic, toy_scenario


@pytest.mark.skipif(CHROMIUM.find() is None, reason="no Chromium, which prints reports")
def test_a_report_is_printed_whole(tmp_path: Path) -> None:
    builder, target = Synthetic(tmp_path, repetitions=2), tmp_path / "report.pdf"
    run = builder.build()
    with toy_scenario(tmp_path / "toy"):
        analyze(run)
    write_pdf(run / "report" / "index.html", target)
    content = target.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    pages = len(re.findall(rb"/Type\s*/Page\b", content))
    width, height = (float(size) for size in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)[0])
    assert pages > 2
    assert height / width == pytest.approx(2**0.5, rel=0.01), "A4"
    assert b"/Outlines" in content
    assert b"/URI (https://doi.org/" in content
    assert b"file:" not in content


def test_where_nothing_can_be_written_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Synthetic(tmp_path, repetitions=1).build()
    monkeypatch.setattr("sys.argv", ["mplab", "report", str(run), "--pdf", str(tmp_path / "no" / "report.pdf")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"the folder {tmp_path / 'no'} does not exist" in capsys.readouterr().err
    assert not (run / "report").exists()
