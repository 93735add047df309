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
        if wanted and value is not None and abs(value - wanted) > wanted * percent / 100
    ]


_UNASKED_LOSSES = ("kernel_dropped", "dropped_send", "dropped_memory")


def judge_emulation(counters: Mapping[str, int]) -> list[str]:
    """What the link emulator lost without being asked to; empty when nothing.

    Args:
        counters: how much each of the shaper's counters has grown during the cell.
    """
    return [
        f"the link emulator lost {lost} packets that it should not have ({name}): the host is too busy"
        for name, lost in counters.items()
        if lost and name.rpartition(".")[2] in _UNASKED_LOSSES
    ]


_LATE_SHARE = 0.01


def judge_punctuality(counters: Mapping[str, int]) -> list[str]:
    """Where the link emulator was often late (by more than 1 ms), which is jitter that nobody asked for.

    Args:
        counters: how much each of the shaper's counters has grown during the cell.
    """
    late = {name.rpartition(".")[0]: count for name, count in counters.items() if name.endswith(".late_packets")}
    return [
        f"{link}: {count} of {sent} packets left the link emulator late: the host was busy"
        for link, count in late.items()
        if (sent := counters.get(f"{link}.packets_out", 0)) and count > sent * _LATE_SHARE
    ]


def judge_captures(captures: Sequence[CaptureResult]) -> list[str]:
    """Which captures miss packets; empty when none does."""
    return [f"{c.file}: {c.dropped} packets were dropped by the capture" for c in captures if c.dropped]
