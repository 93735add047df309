"""Parse tcptrace (S. Ostermann): its table of all statistics, ``-l -r -W -n --csv``.

In the table, "a" is the sender of the first packet. ``tcptrace -houtput`` documents the columns.
"""

import csv
import io
import ipaddress
from collections.abc import Iterable

from mplab.analysis.crosscheck.model import (
    DUPLICATE_PACKETS,
    ComparedField,
    Definition,
    Endpoint,
    FlowRecord,
    Pair,
    Sides,
    number,
    rst_payload,
)

NAME = "tcptrace"
INSTALL = "Debian, Ubuntu: `apt install tcptrace`"
ARGUMENTS = ("-l", "-r", "-W", "-n", "--csv")
RTT_STEP_MS = 0.1
"""Resolution of the times that tcptrace prints with one decimal, ms (it cuts them to microseconds before)."""

SYN_AND_FIN = 2
NEGATIVE = 2.0**63
"""Smallest unsigned 64-bit number that tcptrace prints for a negative difference."""


def parse(text: str) -> list[FlowRecord]:
    """Return the connections in the output of ``tcptrace -l -r -W -n --csv``."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("conn_#,")), None)
    if start is None:
        return []
    rows = csv.reader(io.StringIO("\n".join(line for line in lines[start:] if line.strip())))
    names = [name.strip() for name in next(rows)]
    return [_record(dict(zip(names, row, strict=False))) for row in rows if len(row) >= len(names) - 1]


def _record(row: dict[str, str]) -> FlowRecord:
    sides: dict[str, Sides] = {}
    for name, value in row.items():
        if name.endswith("_a2b") and (other := f"{name[:-3]}b2a") in row:
            sides[name[:-4]] = (number(value), number(row[other]))
    _split(sides, "SYN/FIN_pkts_sent", ("SYNs", "FINs"))
    # tcptrace counts them for the direction of the data, mptrace for the side that sent them.
    sides["duplicate_acks_sent"] = _turned(sides["duplicate_acks"])
    a, b = _end(row["host_a"], row["port_a"]), _end(row["host_b"], row["port_b"])
    return FlowRecord(a, b, seconds(row["first_packet"]), sides)


def _end(address: str, port: str) -> Endpoint:
    """Return (address, port), the address normalised: tcptrace writes zeros in IPv6 that RFC 5952 leaves out."""
    return str(ipaddress.ip_address(address.strip())), int(port)


def seconds(text: str) -> float:
    """Parse a time of tcptrace: the digits after the point are microseconds (``17.5`` is 17.000005 s)."""
    integer, _, fraction = text.strip().partition(".")
    return int(integer) + int(fraction or 0) / 1e6


def _split(sides: dict[str, Sides], name: str, parts: Iterable[str]) -> None:
    both = [str(value).split("/") for value in sides[name]]
    for index, part in enumerate(parts):
        sides[part] = (int(both[0][index]), int(both[1][index]))


def _turned(sides: Sides) -> Sides:
    return sides[1], sides[0]


def _samples_more(pair: Pair) -> float:
    return pair.their("RTT_samples") - pair.our("rtt_samples")


def _reaches_further(pair: Pair) -> bool:
    """Return whether tcptrace's range of RTT samples contains mptrace's, or mptrace has no samples.

    A difference of `RTT_STEP_MS` at either end is allowed.
    """
    lower = pair.their("RTT_min") <= pair.our("rtt_min_ms") + RTT_STEP_MS
    return pair.our("rtt_samples") == 0 or (lower and pair.their("RTT_max") >= pair.our("rtt_max_ms") - RTT_STEP_MS)


def _again(pair: Pair) -> float:
    """Return the number of retransmissions of SYN and FIN that tcptrace counted."""
    return max(pair.their("SYNs") - 1, 0) + max(pair.their("FINs") - 1, 0)


PROBE = Definition(
    "tcptrace-window-probe",
    "tcptrace takes a data segment after a closed window for a probe, as large as it may be, and does not count its "
    "bytes as unique; mptrace counts them, for the receiver may keep them.",
    lambda pair: pair.our("unique_bytes") - pair.their("unique_bytes_sent") == pair.their("zwnd_probe_bytes"),
)
HOLES = Definition(
    "tcptrace-missed-data",
    "Bytes of this direction are not in the capture. tcptrace keeps a limited list of received ranges and clears it "
    "after such a hole, so it misses or invents retransmissions; mptrace keeps every byte.",
    lambda pair: pair.our("missing_bytes") > 0 or pair.their("missed_data") > 0,
)
SYN_FIN_AGAIN = Definition(
    "tcptrace-syn-fin-again",
    "SYN and FIN take a sequence number each: tcptrace counts one that is sent again as a retransmitted data segment "
    "of a byte; mptrace counts only payload.",
    lambda pair: 0 < pair.their("rexmt_data_pkts") - pair.our("retransmitted_segments") == _again(pair),
)
DATA_WITH_RST = rst_payload(lambda pair: pair.our("rsts") > 0 and pair.our("bytes") < pair.their("actual_data_bytes"))
PSH_WITHOUT_DATA = Definition(
    "tcptrace-psh-with-data",
    "tcptrace counts PSH on segments with payload, mptrace on all: a FIN without payload can have it.",
    lambda pair: 0 < pair.our("pushes") - pair.their("pushed_data_pkts") <= pair.our("fins"),
)
SCALE = Definition(
    "tcptrace-window-scale-of-both",
    "tcptrace shows a window scale only when both sides announced one; mptrace shows what each side announced.",
    lambda pair: pair.our("window_scale") > 0 and pair.ours.sides["window_scale"][1 - (pair.side or 0)] is None,
)
OWIN = Definition(
    "tcptrace-owin-syn-fin",
    "The outstanding data of tcptrace counts SYN and FIN as one byte each; mptrace counts only payload.",
    lambda pair: 0 < pair.their("max_owin") - pair.our("flight_max") <= SYN_AND_FIN,
)
OWIN_WRAPS = Definition(
    "tcptrace-owin-below-zero",
    "tcptrace shows a number near 2⁶⁴: an acknowledgement was ahead of the data it knows, and the difference negative.",
    lambda pair: pair.their("max_owin") > NEGATIVE,
)
OWIN_OUTSIDE = Definition(
    "tcptrace-owin-unseen",
    "Bytes of this direction came late or never into the capture. tcptrace measures outstanding data by sequence "
    "numbers, those of segments without payload included; mptrace by the payload that it saw.",
    lambda pair: pair.our("again_segments") > 0 or pair.their("ttl_stream_length") != pair.our("unique_bytes"),
)
OWIN_SEGMENT = Definition(
    "tcptrace-owin-one-more",
    "In some flows tcptrace has one acknowledged segment more among the outstanding ones; tshark's data in flight "
    "agrees with mptrace there.",
    lambda pair: 0 < pair.their("max_owin") - pair.our("flight_max") <= pair.our("segment_max") + SYN_AND_FIN,
)
WINDOW_ZERO = Definition(
    "tcptrace-window-not-zero",
    "The minimum window of tcptrace leaves out closed windows; that of mptrace is 0 when the window was closed.",
    lambda pair: pair.our("window_min") == 0 and pair.our("zero_windows") > 0,
)
WINDOW_SYN = Definition(
    "tcptrace-window-of-syn",
    "tcptrace takes the window of SYN (never scaled) and RST as announced; mptrace leaves them out.",
    lambda pair: (
        pair.their("min_win_adv") <= pair.our("window_min") and pair.their("max_win_adv") >= pair.our("window_max")
    ),
)
RTT_SYN_FIN = Definition(
    "tcptrace-rtt-of-syn-and-fin",
    "tcptrace also has round trips of SYN and FIN, mptrace only of payload: up to two samples more, which change the "
    "minimum, the maximum and the mean.",
    lambda pair: 0 < _samples_more(pair) <= SYN_AND_FIN and _reaches_further(pair),
)
RTT_FEWER = Definition(
    "tcptrace-rtt-of-whole-segments",
    "tcptrace takes a round trip only from an acknowledgement that ends at a segment it still knows, with nothing "
    "sent again or missing before; mptrace from every one that acknowledges new payload of which the newest was sent "
    "once (Karn). With those of SYN and FIN taken off, it has fewer samples, which changes the minimum, the maximum "
    "and the mean.",
    lambda pair: _samples_more(pair) < SYN_AND_FIN,
)
DUPLICATE_ACKS = Definition(
    "tcptrace-duplicate-acks",
    "tcptrace also counts repeated acknowledgements while nothing is outstanding (the third ACK, those after FIN); "
    "mptrace follows RFC 5681 §2.",
    lambda pair: pair.our("duplicate_acks") < pair.their("duplicate_acks_sent"),
)
DUPLICATE_ACKS_PROBE = Definition(
    "tcptrace-duplicate-acks-of-probes",
    "tcptrace takes no acknowledgement of a window probe for a duplicate.",
    lambda pair: pair.their("zwnd_probe_bytes", other=True) > 0,
)
IDLE = Definition(
    "tcptrace-idle-carried-over",
    "tcptrace shows an idle time that is longer than the whole flow: it was not reset where the same ports were "
    "used before, or when the flow was half open.",
    lambda pair: pair.their("idletime_max") > 1000 * float(str(pair.ours.whole.get("duration_s") or 0)),
)

FIELDS = (
    ComparedField("segments", "total_packets", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("data_segments", "actual_data_pkts", definitions=(DATA_WITH_RST, DUPLICATE_PACKETS)),
    ComparedField("bytes", "actual_data_bytes", definitions=(DATA_WITH_RST, DUPLICATE_PACKETS)),
    ComparedField("unique_bytes", "unique_bytes_sent", definitions=(PROBE, HOLES, DATA_WITH_RST)),
    ComparedField("retransmitted_segments", "rexmt_data_pkts", definitions=(SYN_FIN_AGAIN, HOLES)),
    ComparedField("retransmitted_bytes", "rexmt_data_bytes", definitions=(SYN_FIN_AGAIN, HOLES)),
    ComparedField("below_segments", "outoforder_pkts", definitions=(HOLES,)),
    ComparedField("pushes", "pushed_data_pkts", definitions=(PSH_WITHOUT_DATA, DUPLICATE_PACKETS)),
    ComparedField("syns", "SYNs", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("fins", "FINs", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("rsts", "resets_sent", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("pure_acks", "pure_acks_sent", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("sacks", "sack_pkts_sent"),
    ComparedField("dsacks", "dsack_pkts_sent"),
    ComparedField("duplicate_acks", "duplicate_acks_sent", definitions=(DUPLICATE_ACKS, DUPLICATE_ACKS_PROBE)),
    ComparedField("mss", "mss_requested"),
    ComparedField("window_scale", "adv_wind_scale", definitions=(SCALE,)),
    ComparedField("segment_max", "max_segm_size", definitions=(DATA_WITH_RST,)),
    ComparedField("segment_min", "min_segm_size", definitions=(DATA_WITH_RST,)),
    ComparedField("window_max", "max_win_adv", definitions=(WINDOW_SYN,)),
    ComparedField("window_min", "min_win_adv", definitions=(WINDOW_ZERO, WINDOW_SYN)),
    ComparedField("zero_windows", "zero_win_adv"),
    ComparedField("flight_max", "max_owin", definitions=(OWIN, OWIN_WRAPS, OWIN_OUTSIDE, OWIN_SEGMENT)),
    ComparedField("initial_window", "initial_window_bytes"),
    ComparedField("payload_s", "data_xmit_time", tolerance=0.001, definitions=(DATA_WITH_RST,)),
    ComparedField("idle_max_ms", "idletime_max", tolerance=RTT_STEP_MS, definitions=(IDLE,)),
    ComparedField("rtt_samples", "RTT_samples", definitions=(RTT_SYN_FIN, RTT_FEWER)),
    ComparedField("rtt_min_ms", "RTT_min", tolerance=RTT_STEP_MS, definitions=(RTT_SYN_FIN, RTT_FEWER)),
    ComparedField("rtt_mean_ms", "RTT_avg", tolerance=RTT_STEP_MS, definitions=(RTT_SYN_FIN, RTT_FEWER)),
    ComparedField("rtt_max_ms", "RTT_max", tolerance=RTT_STEP_MS, definitions=(RTT_SYN_FIN, RTT_FEWER)),
    ComparedField("rtt_stdev_ms", "RTT_stdev", tolerance=RTT_STEP_MS, definitions=(RTT_SYN_FIN, RTT_FEWER)),
)
