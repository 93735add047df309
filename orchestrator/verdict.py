"""Whether a cell was what was asked: pure judgements on what was measured."""

from collections.abc import Mapping, Sequence

from orchestrator.capture import CaptureResult
from orchestrator.shaper import PathMeasurement
from orchestrator.spec.experiment import Tolerance
from orchestrator.spec.link import PathCondition


def judge_links(
    asked: Mapping[str, PathCondition], measured: Mapping[str, PathMeasurement], tolerance: Tolerance
) -> list[str]:
    """Why the links are not what was asked; empty when they are."""
    return [
        reason
        for interface, path in asked.items()
        for reason in _judge_path(interface, path, measured[interface], tolerance)
    ]


def _judge_path(interface: str, asked: PathCondition, found: PathMeasurement, tolerance: Tolerance) -> list[str]:
    quantities = (
        ("RTT", asked.rtt_ms, found.rtt_ms_median, "ms", tolerance.rtt_percent),
        ("rate down", asked.down_kbps, found.down_kbps, "kbit/s", tolerance.rate_percent),
        ("rate up", asked.up_kbps, found.up_kbps, "kbit/s", tolerance.rate_percent),
    )
    return [
        f"{interface}: {name} {value:.4g} {unit} measured, {wanted:.4g} {unit} asked "
        f"(off by {abs(value - wanted) / wanted:.0%}, {percent:g} % allowed)"
        for name, wanted, value, unit, percent in quantities
        if wanted and abs(value - wanted) > wanted * percent / 100
    ]


def judge_captures(captures: Sequence[CaptureResult]) -> list[str]:
    """Which captures miss packets; empty when none does."""
    return [f"{c.file}: {c.dropped} packets were dropped by the capture" for c in captures if c.dropped]
