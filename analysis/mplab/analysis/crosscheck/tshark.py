"""Parse the output of tshark, one line per packet (``-T fields``), and count packets per stream and side."""

import io

import polars as pl

from mplab.analysis.crosscheck.model import (
    DUPLICATE_PACKETS,
    ComparedField,
    Definition,
    FlowRecord,
    Sides,
    Value,
    rst_payload,
)

NAME = "tshark"
INSTALL = "Debian, Ubuntu: `apt install tshark`"
PACKETS = "tcp && !icmp && !icmpv6"
"""Filter that excludes TCP headers quoted in ICMP messages."""

PREFERENCES = ("tcp.desegment_tcp_streams:FALSE", "tcp.relative_sequence_numbers:TRUE", "mptcp.analyze_mptcp:TRUE")
FLAG_FIN, FLAG_SYN, FLAG_RST, FLAG_PSH, FLAG_ACK = 1, 2, 4, 8, 16
COLUMNS = (
    "frame.time_epoch",
    "tcp.stream",
    "mptcp.stream",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.len",
    "tcp.flags",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack.count",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive",
    "tcp.analysis.lost_segment",
    "tcp.analysis.duplicate_ack",
    "tcp.options.mptcp.subtype",
    "tcp.options.mptcp.version",
    "tcp.options.mptcp.datafin.flag",
    "mptcp.expected_token",
    "mptcp.ack",
)
MP_CAPABLE = "0"
FIRST = ("time", "src", "dst", "sport", "dport")
"""Columns whose values in a stream's first packet describe the stream."""


def arguments(capture: str) -> list[str]:
    """Return tshark's arguments, including preferences that must not depend on the user's settings."""
    options = [word for preference in PREFERENCES for word in ("-o", preference)]
    fields = [word for column in COLUMNS for word in ("-e", column)]
    layout = ["-E", "header=y", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    return ["-n", "-r", capture, *options, "-Y", PACKETS, "-T", "fields", *layout, *fields]


def parse(text: str) -> tuple[list[FlowRecord], list[FlowRecord]]:
    """Return the subflows and the Multipath TCP connections in the output of ``tshark -T fields`` with `COLUMNS`."""
    packets = _packets(text)
    if packets.is_empty():
        return [], []
    return _subflows(packets), _connections(packets.filter(pl.col("mptcp.stream").is_not_null()))


def _packets(text: str) -> pl.DataFrame:
    """Return one typed row per packet; ``side`` is 0 for packets of the sender of the stream's first packet, else 1."""
    lines = text[text.find(COLUMNS[0]) :]
    if not lines.startswith(COLUMNS[0]):
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    schema = dict.fromkeys(COLUMNS, pl.String)
    frame = pl.read_csv(io.StringIO(lines), separator="\t", schema=schema, quote_char=None)
    ends = frame.select(
        time=pl.col("frame.time_epoch").cast(pl.Float64),
        src=pl.coalesce("ip.src", "ipv6.src"),
        dst=pl.coalesce("ip.dst", "ipv6.dst"),
        sport=pl.col("tcp.srcport").cast(pl.Int64),
        dport=pl.col("tcp.dstport").cast(pl.Int64),
        length=pl.col("tcp.len").cast(pl.Int64).fill_null(0),
        flags=pl.col("tcp.flags").str.strip_prefix("0x").str.to_integer(base=16).fill_null(0),
        stream=pl.col("tcp.stream").cast(pl.Int64),
    )
    named = pl.concat([ends, frame], how="horizontal").with_columns(
        pl.col(name).first().over("stream").alias(f"stream_{name}") for name in FIRST
    )
    from_a = (pl.col("src") == pl.col("stream_src")) & (pl.col("sport") == pl.col("stream_sport"))
    return named.with_columns(side=pl.when(from_a).then(0).otherwise(1))


def _has(flag: int) -> pl.Expr:
    return (pl.col("flags") & flag) != 0


def _seen(column: str) -> pl.Expr:
    return pl.col(column).is_not_null()


def _subflows(packets: pl.DataFrame) -> list[FlowRecord]:
    payload = pl.col("length") > 0
    below = _seen("tcp.analysis.retransmission") | _seen("tcp.analysis.out_of_order") | _seen("tcp.analysis.keep_alive")
    rtt_ms = pl.col("tcp.analysis.ack_rtt").cast(pl.Float64) * 1000
    bare = ~payload & ~_has(FLAG_SYN | FLAG_FIN | FLAG_RST) & _has(FLAG_ACK)
    counted = packets.group_by("stream", "side", maintain_order=True).agg(
        segments=pl.len(),
        data_segments=payload.sum(),
        bytes=pl.col("length").sum(),
        syns=_has(FLAG_SYN).sum(),
        fins=_has(FLAG_FIN).sum(),
        rsts=_has(FLAG_RST).sum(),
        pushes=_has(FLAG_PSH).sum(),
        pure_acks=bare.sum(),
        mss=pl.col("tcp.options.mss_val").filter(_has(FLAG_SYN)).first().cast(pl.Int64),
        window_scale=pl.col("tcp.options.wscale.shift").filter(_has(FLAG_SYN)).first().cast(pl.Int64),
        sacks=_seen("tcp.options.sack.count").sum(),
        duplicate_acks=_seen("tcp.analysis.duplicate_ack").sum(),
        segment_max=pl.col("length").max(),
        below=(payload & below).sum(),
        lost=_seen("tcp.analysis.lost_segment").sum(),
        rtt_samples=_seen("tcp.analysis.ack_rtt").sum(),
        rtt_min_ms=rtt_ms.min(),
    )
    streams = packets.group_by("stream", maintain_order=True).agg(
        *(pl.col(f"stream_{name}").first().alias(name) for name in FIRST),
        initial_rtt_ms=pl.col("tcp.analysis.initial_rtt").drop_nulls().first().cast(pl.Float64) * 1000,
    )
    sides = _by_stream(counted, "stream")
    return [_record(row, sides[row["stream"]]) for row in streams.iter_rows(named=True)]


def _record(row: dict[str, Value], sides: dict[str, Sides]) -> FlowRecord:
    a, b = (str(row["src"]), int(str(row["sport"]))), (str(row["dst"]), int(str(row["dport"])))
    # tshark attributes a round trip to the acknowledgement, mptrace to the acknowledged data of the other side.
    for name in ("rtt_samples", "rtt_min_ms"):
        if name in sides:
            sides[name] = sides[name][::-1]
    return FlowRecord(a, b, float(str(row["time"])), sides, row)


def _by_stream(counted: pl.DataFrame, stream: str) -> dict[int, dict[str, Sides]]:
    names = [name for name in counted.columns if name not in {stream, "side"}]
    sides_of: dict[int, dict[str, Sides]] = {}
    for row in counted.iter_rows(named=True):
        sides = sides_of.setdefault(row[stream], dict.fromkeys(names, (None, None)))
        for name in names:
            a, b = sides[name]
            sides[name] = (row[name], b) if row["side"] == 0 else (a, row[name])
    return sides_of


def _connections(packets: pl.DataFrame) -> list[FlowRecord]:
    """Return one record per ``mptcp.stream``, with the ends of its first TCP stream."""
    numbers = packets.with_columns(
        connection=pl.col("mptcp.stream").str.split(",").list.first().cast(pl.Int64),
        data_ack=pl.col("mptcp.ack").str.split(",").list.last().cast(pl.UInt64, strict=False).cast(pl.Float64),
        fin=pl.col("tcp.options.mptcp.datafin.flag").fill_null("").str.contains("1|True"),
        capable=pl.col("tcp.options.mptcp.subtype").fill_null("") == MP_CAPABLE,
    )
    counted = numbers.group_by("connection", "side", maintain_order=True).agg(
        data_ack=pl.col("data_ack").max(), data_fin=pl.col("fin").any()
    )
    streams = numbers.group_by("connection", maintain_order=True).agg(
        *(pl.col(f"stream_{name}").first().alias(name) for name in FIRST),
        subflows=pl.col("stream").n_unique(),
        version=pl.col("tcp.options.mptcp.version").filter(pl.col("capable")).drop_nulls().first().cast(pl.Int64),
        token=_token(1),
        token_client=_token(0),
    )
    sides = _by_stream(counted, "connection")
    records = []
    for row in streams.iter_rows(named=True):
        own = sides[row["connection"]]
        a, b = own["data_ack"]
        # Data acknowledgements are relative to the initial number, which the first byte follows. Each side acknowledges
        # the other side's data.
        own["acked_bytes"] = (_less_one(b), _less_one(a))
        records.append(_record(row, own))
    return records


def _token(side: int) -> pl.Expr:
    """Return a polars expression: the MPTCP token, eight hexadecimal digits, of the key that a side sent in MP_CAPABLE.

    ``side`` is 0 for the sender of the stream's first packet, else 1 (`_packets`).
    """
    announced = pl.col("mptcp.expected_token").filter(pl.col("capable") & (pl.col("side") == side)).drop_nulls().first()
    return announced.cast(pl.Int64).map_elements(lambda token: f"{token:08x}", return_dtype=pl.String)


def _less_one(value: Value) -> Value:
    return max(int(value) - 1, 0) if isinstance(value, int | float) else None


DATA_FIN = Definition(
    "mptcp-data-fin",
    "DATA_FIN takes one data sequence number: the last acknowledgement is one above the bytes.",
    lambda pair: pair.their("acked_bytes") - pair.our("mptcp_bytes") == 1,
)
NOT_ACKNOWLEDGED = Definition(
    "mptcp-not-acknowledged",
    "tshark's number is the highest data acknowledgement; mptrace counts what was sent. The capture ends, or the "
    "connection was cut, before the rest was acknowledged.",
    lambda pair: pair.our("mptcp_bytes") > pair.their("acked_bytes"),
)
RELATIVE_TO_FIRST = Definition(
    "tshark-unknown-idsn",
    "Without the key exchange in the capture, tshark's numbers are relative to the first one it sees, or absolute.",
    lambda pair: not pair.ours.whole.get("token"),
)
SUBFLOWS = Definition(
    "tshark-subflows-asked",
    "tshark counts every TCP stream whose token or ports lead to the connection; mptrace counts a subflow when its "
    "handshake, MP_JOIN in all three segments, came to its end.",
    lambda pair: pair.our("subflows_asked") == pair.their("subflows"),
)
TIMES = Definition(
    "tshark-below-by-time",
    "tshark marks retransmissions, reordering and keep-alives by rules of time and sequence number, and reports "
    "missed segments (lost_segment); mptrace compares bytes. Both may differ by the segments that tshark missed, and "
    "by a quarter of those sent again.",
    lambda pair: (
        abs(pair.our("again_segments") - pair.their("below")) <= pair.their("lost") + pair.our("again_segments") // 4
    ),
)
DUPLICATE_ACKS = Definition(
    "tshark-duplicate-acks",
    "tshark calls every repeated acknowledgement without payload and with the same window duplicate; mptrace only "
    "while data is outstanding (RFC 5681 §2).",
    lambda pair: pair.our("duplicate_acks") <= pair.their("duplicate_acks"),
)
ACK_RTT = Definition(
    "tshark-ack-rtt",
    "tshark's round trips include those of SYN, SYN/ACK and FIN; mptrace's are only of payload.",
    lambda pair: pair.their("rtt_min_ms") < pair.our("rtt_min_ms"),
)
ACK_RTT_HOLE = Definition(
    "tshark-ack-rtt-of-holes",
    "When a segment fills a hole, its acknowledgement covers later ones that came before. tshark takes the time since "
    "the segment at its end; mptrace since the segment that came last, which it answers.",
    lambda pair: pair.our("again_segments") > 0,
)
STREAMS = Definition(
    "tshark-initial-rtt",
    "tshark takes the time from SYN to the first ACK of the client, also when the SYN came twice; mptrace then has "
    "no value.",
    lambda pair: pair.our("syn_retries") > 0 or pair.our("syn_ack_retries") > 0,
)
RST_SACK = Definition(
    "tshark-sack-on-rst",
    "tshark counts SACK blocks on a RST too, where they have no meaning.",
    lambda pair: 0 < pair.their("sacks") - pair.our("sacks") <= pair.our("rsts"),
)
RST_PAYLOAD = rst_payload(lambda pair: pair.our("rsts") > 0)

SUBFLOW_FIELDS = (
    ComparedField("segments", "segments", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("data_segments", "data_segments", definitions=(DUPLICATE_PACKETS, RST_PAYLOAD)),
    ComparedField("bytes", "bytes", definitions=(DUPLICATE_PACKETS, RST_PAYLOAD)),
    ComparedField("syns", "syns", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("fins", "fins", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("rsts", "rsts", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("pushes", "pushes", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("pure_acks", "pure_acks", definitions=(DUPLICATE_PACKETS,)),
    ComparedField("mss", "mss"),
    ComparedField("window_scale", "window_scale"),
    ComparedField("sacks", "sacks", definitions=(RST_SACK, DUPLICATE_PACKETS)),
    ComparedField("segment_max", "segment_max"),
    ComparedField("duplicate_acks", "duplicate_acks", definitions=(DUPLICATE_ACKS,)),
    ComparedField("again_segments", "below", definitions=(TIMES,)),
    ComparedField("rtt_min_ms", "rtt_min_ms", tolerance=0.002, definitions=(ACK_RTT, ACK_RTT_HOLE)),
    ComparedField("rtt_handshake_ms", "initial_rtt_ms", tolerance=0.002, definitions=(STREAMS,)),
)
CONNECTION_FIELDS = (
    ComparedField("mptcp_version", "version"),
    ComparedField("token", "token"),
    ComparedField("token_client", "token_client"),
    ComparedField("subflows", "subflows", definitions=(SUBFLOWS,)),
    ComparedField("mptcp_bytes", "acked_bytes", definitions=(DATA_FIN, RELATIVE_TO_FIRST, NOT_ACKNOWLEDGED)),
)
