"""``mplab doctor`` and a run warn when the lab's origin cannot use the requested congestion control."""

from pathlib import Path

import pytest

from mplab.base import congestion
from mplab.base.errors import LabNotReadyError
from mplab.base.places import EXPERIMENTS
from mplab.lab import doctor
from mplab.run.hostside import ready
from mplab.run.planning import plan


@pytest.mark.parametrize(
    ("available", "allowed", "expected"),
    [
        ("reno bbr cubic", "reno bbr", ("warning", "cubic is not among the allowed ones (reno bbr)")),
        ("reno bbr cubic", "reno cubic", ("ok", "allowed: reno cubic")),
        ("reno bbr", "reno bbr", ("warning", "cubic is not among reno bbr")),
    ],
)
def test_what_the_host_allows_decides(
    available: str, allowed: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = plan(EXPERIMENTS / "smoke.yaml").experiment
    (tmp_path / "tcp_available_congestion_control").write_text(f"{available}\n")
    (tmp_path / "tcp_allowed_congestion_control").write_text(f"{allowed}\n")
    monkeypatch.setattr(congestion, "SYSCTL", tmp_path)
    monkeypatch.setattr(congestion, "accepted", lambda _: False)
    level, words = expected
    doubts = list(ready.doubts_about(experiment))
    assert [words in doubt for doubt in doubts] == ([True] if level == "warning" else []), "a run warns, too"
    check = doctor._congestion_control("cubic")
    assert (check.level, words in check.found) == (level, True)
    if "allowed ones" in words:
        assert check.remedy.endswith("tcp_allowed_congestion_control='reno bbr cubic'")


@pytest.mark.parametrize(
    "chosen", ["congestion_control: bbr\n", "transports: [mptcp, {sptcp: {congestion_control: bbr}}]\n"]
)
def test_a_plan_refuses_what_the_kernel_lacks(chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"mplab: 1\nname: own\nextends: {EXPERIMENTS}/smoke.yaml\n{chosen}")
    (tmp_path / "tcp_available_congestion_control").write_text("reno cubic\n")
    monkeypatch.setattr(congestion, "SYSCTL", tmp_path)
    monkeypatch.setattr(congestion, "accepted", lambda _: False)
    with pytest.raises(LabNotReadyError, match=r"congestion_control of .*sptcp.*: bbr is not among reno cubic"):
        plan(file)


def test_settings_that_cannot_be_read_stop_neither_a_run_nor_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(congestion, "SYSCTL", tmp_path)
    assert list(ready.doubts_about(plan(EXPERIMENTS / "smoke.yaml").experiment)) == []
    check = doctor._congestion_control("cubic")
    assert (check.level, "tcp_available_congestion_control: No such file" in check.found) == ("warning", True)


def test_a_kernel_that_loads_an_algorithm_on_request_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp_available_congestion_control").write_text("cubic\n")
    monkeypatch.setattr(congestion, "SYSCTL", tmp_path)
    assert congestion.missing("reno") is None, "every kernel has it, but the list does not name it yet"
    problem = congestion.missing("none-such")
    assert problem is not None
    assert problem.text == "none-such is not among cubic"
