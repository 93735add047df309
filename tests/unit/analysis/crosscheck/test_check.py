"""Cross-checks with the real tools, where they are installed."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from mplab.analysis.crosscheck import mptcptrace
from mplab.analysis.crosscheck.check import TOOLS, check, require
from mplab.analysis.crosscheck.program import as_pcap, link_type
from mplab.analysis.errors import CaptureError, ProgramMissingError, ToolMissingError
from mplab.analysis.record.decode import find_mptrace

CAPTURES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
TWO_PATHS = [CAPTURES / "two-paths-wlan0.pcapng", CAPTURES / "two-paths-rmnet0.pcapng"]
ALONE = CAPTURES / "retransmissions-wlan0.pcapng"


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    try:
        find_mptrace()
    except ProgramMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("tool", ["tshark", "tcptrace"])
@pytest.mark.parametrize("files", [TWO_PATHS, [ALONE]])
def test_our_own_captures_agree(tool: str, files: list[Path]) -> None:
    need(tool, "mergecap", "editcap", "capinfos")
    report = check(tool, files)
    assert report.flows >= len(files)
    assert [vars(d) for d in report.differences] == []
    assert report.agree
    assert {"segments", "bytes", "unique_bytes" if tool == "tcptrace" else "syns"} <= set(report.agreed)


STAND_IN = """#!/bin/sh
[ "$1" = -f ] && [ -s "$2" ] && shift 2 && [ "$*" = "-s -S -w 2" ] || exit 9
echo "MPTCP connection 0 with id 0"
echo "	Subflow 0 with wscale : 10 10 IPv4 sport 50455 dport 4000 saddr 10.2.0.1 daddr 10.1.0.2"
echo "	Subflow 1 with wscale : 10 10 IPv4 sport 39846 dport 4000 saddr 10.1.0.1 daddr 10.1.0.2"
{ echo "a.pcap;0;seqAcked;300034;700037"; echo "a.pcap;0;bytesReinjected;0;99999"; } > stats_0.csv
"""


@pytest.mark.parametrize(("version", "flows"), [(0, 0), (1, 1)])
def test_mptcptrace_is_run_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, flows: int) -> None:
    """Use a stand-in for mptcptrace that knows the connection of our captures, which is of version 1."""
    need("mergecap", "editcap", "capinfos")
    program = tmp_path / "mptcptrace"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(mptcptrace, "READABLE_VERSION", version)
    report = check("mptcptrace", TWO_PATHS)
    assert report.flows == flows
    if version == 0:
        assert "1 connection left out: not of version 0, which is all it reads" in report.notes
        assert report.agree
        return
    assert report.agreed["subflows"] == 1
    assert report.explained["mptcp_bytes", "mptcptrace-last-acknowledgement"] == 2
    assert report.differences == []


def test_what_was_done_to_a_capture_is_said(tmp_path: Path) -> None:
    need("mergecap", "editcap", "capinfos")
    converted = as_pcap(TWO_PATHS, tmp_path)
    assert link_type(converted.path) == "ether"
    assert [note.split(" (")[0] for note in converted.notes] == [
        "2 captures were merged by time",
        "the captures were converted to pcap, with times in microseconds",
    ]


def test_compressed_captures_are_converted_too(tmp_path: Path) -> None:
    need("mergecap", "editcap", "capinfos")
    (tmp_path / "a.pcapng.gz").write_bytes(gzip.compress(ALONE.read_bytes()))
    assert as_pcap([tmp_path / "a.pcapng.gz"], tmp_path).path.stat().st_size > 1000


def test_a_file_that_is_no_capture_is_named(tmp_path: Path) -> None:
    need("tshark", "capinfos")
    bad = tmp_path / "notes.txt"
    bad.write_text("hello")
    with pytest.raises(CaptureError, match=r"notes\.txt"):
        check("tshark", [bad])
    with pytest.raises(CaptureError, match="there is no such file"):
        check("tshark", [tmp_path / "nowhere.pcap"])


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_tool_that_is_not_installed_says_how_to_get_it(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissingError, match=f"{tool} is not installed: ") as caught:
        require(tool)
    assert caught.value.exit_code == 3
