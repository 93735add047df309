package ends

import "mplab/analysis/mptrace/tables"

// PathEnds describes one direction of a subflow between the ends.
type PathEnds struct {
	ConnectionID int32  `json:"connection_id" doc:"as in the tables of the phone's capture"`
	SubflowID    int32  `json:"subflow_id"`
	Direction    string `json:"direction" doc:"up or down"`
	Interface    string `json:"interface" doc:"the phone's interface: the path"`
	Network      string `json:"network" doc:"its network; empty when not known"`
	NAT          bool   `json:"nat" doc:"addresses or ports differ between the ends"`

	Sent          int64                 `json:"sent" unit:"transmissions" doc:"captured by the sender and judged; a super-segment of the network card is one"`
	Arrived       int64                 `json:"arrived" unit:"transmissions" doc:"of them, whose last byte was captured by the receiver"`
	Lost          int64                 `json:"lost" unit:"transmissions" doc:"of them, that did not arrive, or not whole"`
	Ambiguous     int64                 `json:"ambiguous" unit:"transmissions" doc:"copies that nothing tells apart of which not all arrived: how many were lost is known, which and how late is not"`
	NotJudged     int64                 `json:"not_judged" unit:"transmissions" doc:"sent while the other end did not capture yet or any more; and acknowledgements without IP identification that did not arrive"`
	WireSent      int64                 `json:"wire_sent" unit:"packets" doc:"as sent, super-segments divided by the MSS"`
	WireLost      int64                 `json:"wire_lost" unit:"packets" doc:"of them, that did not arrive"`
	BytesSent     int64                 `json:"bytes_sent" unit:"bytes" doc:"payload of sent"`
	BytesLost     int64                 `json:"bytes_lost" unit:"bytes"`
	LostPercent   tables.Maybe[float64] `json:"lost_percent" unit:"%" doc:"wire_lost of wire_sent"`
	Retransmitted int64                 `json:"retransmitted" unit:"transmissions" doc:"of sent, with at least one byte sent before on the subflow"`
	Duplicated    int64                 `json:"duplicated" unit:"packets" doc:"that the receiver captured once more than they were sent: doubled by the network"`
	Reordered     int64                 `json:"reordered" unit:"transmissions" doc:"that arrived after one sent later (RFC 4737 §3)"`
	Unseen        int64                 `json:"unseen" unit:"packets" doc:"that arrived without having been captured by the sender"`

	Delays     int64                 `json:"delays" unit:"samples" doc:"one-way delays: of arrived, without the ambiguous"`
	OWDMinMS   tables.Maybe[float64] `json:"owd_min_ms" unit:"ms" doc:"one-way delay: sender's capture to the arrival of the last byte; see the clock for its uncertainty"`
	OWDMeanMS  tables.Maybe[float64] `json:"owd_mean_ms" unit:"ms"`
	OWDStdevMS tables.Maybe[float64] `json:"owd_stdev_ms" unit:"ms" doc:"n − 1"`
	OWDP25MS   tables.Maybe[float64] `json:"owd_p25_ms" unit:"ms" doc:"quantiles are exact as long as all samples are kept (up to twice --samples), beyond that within 0.8 % of the delay above the shortest"`
	OWDP50MS   tables.Maybe[float64] `json:"owd_p50_ms" unit:"ms"`
	OWDP75MS   tables.Maybe[float64] `json:"owd_p75_ms" unit:"ms"`
	OWDP95MS   tables.Maybe[float64] `json:"owd_p95_ms" unit:"ms"`
	OWDP99MS   tables.Maybe[float64] `json:"owd_p99_ms" unit:"ms"`
	OWDMaxMS   tables.Maybe[float64] `json:"owd_max_ms" unit:"ms"`
	JitterMS   tables.Maybe[float64] `json:"jitter_ms" unit:"ms" doc:"interarrival jitter of RFC 3550 §6.4.1, mean over the arrivals"`
	SpreadMS   tables.Maybe[float64] `json:"spread_ms" unit:"ms" doc:"owd_p95_ms − owd_p50_ms"`
}

// OWD is a one-way delay.
type OWD struct {
	ConnectionID int32   `json:"connection_id"`
	SubflowID    int32   `json:"subflow_id"`
	Direction    string  `json:"direction"`
	TimeNS       int64   `json:"time_ns" unit:"ns" doc:"when it was sent, by the phone's clock, since 1970 UTC"`
	OWDMS        float64 `json:"owd_ms" unit:"ms"`
	Weight       int32   `json:"weight" unit:"samples" doc:"how many samples it stands for: with more than twice --samples of them every second, fourth, … is kept"`
}

// Loss is a transmission, or part of one, that did not arrive.
type Loss struct {
	ConnectionID   int32  `json:"connection_id"`
	SubflowID      int32  `json:"subflow_id"`
	Direction      string `json:"direction"`
	TimeNS         int64  `json:"time_ns" unit:"ns" doc:"when it was sent, by the phone's clock, since 1970 UTC"`
	Seq            int64  `json:"seq" unit:"bytes" doc:"relative sequence number; 0 is the first byte of payload, −1 the SYN"`
	Bytes          int64  `json:"bytes" unit:"bytes" doc:"payload; 0 for acknowledgements, SYN, FIN and RST alone"`
	Packets        int32  `json:"packets" unit:"packets" doc:"on the wire, see wire_sent"`
	Retransmission bool   `json:"retransmission" doc:"it was a retransmission itself"`
	Ambiguous      bool   `json:"ambiguous" doc:"it may have been another copy of the same bytes"`
}

// Reordering describes how long data waited at the receiver for earlier data.
type Reordering struct {
	ConnectionID  int32                 `json:"connection_id"`
	Direction     string                `json:"direction"`
	Level         string                `json:"level" doc:"mptcp: by data sequence number; tcp: by sequence number"`
	Bytes         int64                 `json:"bytes" unit:"bytes" doc:"data that arrived, each byte once"`
	WaitedBytes   int64                 `json:"waited_bytes" unit:"bytes" doc:"of them, that came before data in front of them"`
	WaitedPercent tables.Maybe[float64] `json:"waited_percent" unit:"%"`
	UnknownBytes  int64                 `json:"unknown_bytes" unit:"bytes" doc:"of them, that waited for data that the capture does not hold: how long is not known, and they count as waited only"`
	WaitingMax    int64                 `json:"waiting_max" unit:"bytes" doc:"most bytes that waited at one time"`
	DelayP50MS    tables.Maybe[float64] `json:"delay_p50_ms" unit:"ms" doc:"from arrival until all data before had arrived; quantiles over the bytes, 0 for those that did not wait"`
	DelayP75MS    tables.Maybe[float64] `json:"delay_p75_ms" unit:"ms"`
	DelayP95MS    tables.Maybe[float64] `json:"delay_p95_ms" unit:"ms"`
	DelayP99MS    tables.Maybe[float64] `json:"delay_p99_ms" unit:"ms"`
	DelayMaxMS    tables.Maybe[float64] `json:"delay_max_ms" unit:"ms"`
	DelayMeanMS   tables.Maybe[float64] `json:"delay_mean_ms" unit:"ms" doc:"over all bytes"`
	WaitedMeanMS  tables.Maybe[float64] `json:"waited_mean_ms" unit:"ms" doc:"over the bytes that waited"`
}

// Reinjection reports which copy of data carried by two subflows arrived first.
// Connection, direction, time and offset match the reinjections table of the
// sender's capture; times are by the phone's clock.
type Reinjection struct {
	ConnectionID int32                 `json:"connection_id"`
	Direction    string                `json:"direction"`
	TimeNS       int64                 `json:"time_ns" unit:"ns" doc:"when the copy was sent, by the phone's clock, since 1970 UTC"`
	Offset       int64                 `json:"offset" unit:"bytes" doc:"first byte, from the first byte of the direction's data"`
	Bytes        int64                 `json:"bytes" unit:"bytes"`
	FromSubflow  int32                 `json:"from_subflow" doc:"that carried it first"`
	ToSubflow    int32                 `json:"to_subflow" doc:"that carried the copy"`
	OriginalNS   tables.Maybe[int64]   `json:"original_ns" unit:"ns" doc:"when all of it had arrived on the subflow that carried it first; null: lost there"`
	CopyNS       tables.Maybe[int64]   `json:"copy_ns" unit:"ns" doc:"when all of it had arrived on the other; null: lost there"`
	CopyFirst    tables.Maybe[bool]    `json:"copy_first" doc:"the copy came before the original, or alone; null: neither came"`
	GainMS       tables.Maybe[float64] `json:"gain_ms" unit:"ms" doc:"how much earlier the copy came than the original; negative: later; null: one was lost"`
}

// Summary counts matched and unmatched flows and packets.
type Summary struct {
	Flows          int64 `json:"flows" unit:"flows" doc:"of which packets were matched"`
	FlowsNAT       int64 `json:"flows_nat" unit:"flows" doc:"of them, whose addresses or ports differ between the ends"`
	FlowsPhone     int64 `json:"flows_phone" unit:"flows" doc:"sent by the phone to addresses of matched flows and never answered: all was lost"`
	FlowsUnmatched int64 `json:"flows_unmatched" unit:"flows" doc:"of which no packet was matched, though the other end answered or captured some: not in the tables"`
	Ignored        int64 `json:"packets_ignored" unit:"packets" doc:"between other addresses than the two ends'"`
	PacketsPhone   int64 `json:"packets_phone" unit:"packets" doc:"TCP, of the phone's captures"`
	PacketsProxy   int64 `json:"packets_proxy" unit:"packets"`
	FromNS         int64 `json:"from_ns" unit:"ns" doc:"both ends captured from here on, by the phone's clock, since 1970 UTC"`
	ToNS           int64 `json:"to_ns" unit:"ns" doc:"… to here"`
}
