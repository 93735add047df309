package tcp

import (
	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// sides maps a direction to the name of its sender.
var sides = [2]string{"client", "server"}

// Row fills in the columns that TCP determines: times, retries, closing, and
// addresses with Ends[Up] as the client. It does not set IDs, role and MPTCP
// columns.
func (f *Flow) Row(row *tables.Subflow) {
	up, down := &f.Ends[Up], &f.Ends[Down]
	row.Client, row.ClientPort = up.Addr.String(), int32(up.Port)
	row.Server, row.ServerPort = down.Addr.String(), int32(down.Port)
	row.IPVersion = 6
	if up.Addr.Netip().Is4() {
		row.IPVersion = 4
	}
	row.StartNS = f.StartNS
	row.DurationS = seconds(f.LastNS - f.StartNS)
	row.OpenedBy = sides[Up]
	row.Established = f.Established()
	row.SYNSeen = f.SYNSeen
	row.SYNRetries = int32(max(1, f.half[Up].opens()) - 1)
	row.SYNACKRetries = int32(max(1, f.half[Down].synAcks) - 1)
	if ns, ok := f.handshakeNS(); ok {
		row.RTTHandshakeMS = milliseconds(ns)
		row.RTTServerMS = milliseconds(f.synAckNS - f.synNS)
	}
	row.Closed = f.Closed()
	if f.reset {
		row.ResetBy = sides[f.resetBy]
	}
	row.Duplicates = f.duplicates
	if f.streams != nil {
		f.payloadRow(row)
	}
}

func (f *Flow) payloadRow(row *tables.Subflow) {
	up, down := &f.streams[Up], &f.streams[Down]
	row.PayloadUp, row.PayloadDown = up.bytes, down.bytes
	row.UniqueUp, row.UniqueDown = int64(up.seen.Bytes()), int64(down.seen.Bytes())
	row.Used = up.bytes+down.bytes > 0
	for _, s := range [...]*stream{up, down} {
		if s.bytes == 0 {
			continue
		}
		if first := &row.FirstPayloadNS; !first.Known || s.firstPayloadNS < first.Value {
			*first = tables.Just(s.firstPayloadNS)
		}
		row.LastPayloadNS = tables.Just(max(row.LastPayloadNS.Value, s.lastPayloadNS))
	}
}

// DirectionRow fills in the columns of a direction that TCP determines.
func (f *Flow) DirectionRow(dir uint8, row *tables.Direction) {
	h := &f.half[dir]
	row.Level, row.Direction = tables.LevelTCP, tables.Directions[dir]
	row.Segments, row.Pushes = h.segments, h.pushes
	row.SYNs, row.FINs, row.RSTs = int64(h.syns), int64(h.fins), int64(h.rsts)
	row.SACKPermitted = h.sackPermitted
	row.Timestamps = h.has&packet.HasTimestamps != 0
	if h.mss > 0 {
		row.MSS = tables.Just(int32(h.mss))
	}
	if h.hasScale {
		row.WindowScale = tables.Just(int32(h.scale))
	}
	if h.segments > 0 {
		row.TTLMin, row.TTLMax = int32(h.ttlMin), int32(h.ttlMax)
		row.IdleMaxMS = float64(h.idleNS) / 1e6
		row.FirstNS, row.LastNS = tables.Just(h.firstNS), tables.Just(h.lastNS)
	}
	if f.streams == nil {
		return
	}
	s := &f.streams[dir]
	s.dataRow(row)
	s.ackRow(row)
	if s.loss != nil {
		s.loss.row(row)
	}
	if s.windows > 0 && f.scaled() {
		s.windowRow(row)
	}
	row.ZeroWindows = s.zeroWindows
	row.SACKs, row.DSACKs, row.DuplicateACKs = s.sacks, s.dsacks, s.dupACKs
}

// dataRow fills in the columns about sent data.
func (s *stream) dataRow(row *tables.Direction) {
	row.DataSegments, row.WireSegments, row.PureACKs = s.dataSegments, s.wireSegments, s.pureACKs
	row.Bytes, row.UniqueBytes = s.bytes, int64(s.seen.Bytes())
	row.SegmentMin, row.SegmentMax = int64(s.sizeMin), int64(s.sizeMax)
	if s.dataSegments == 0 {
		return
	}
	row.MissingBytes = int64(s.edge - s.low - s.seen.Overlap(s.low, s.edge) + s.seen.Filled())
	row.FlightMax = s.flightMax
	if s.freshSegments > 0 {
		row.FlightMean = tables.Just(float64(s.flightSum) / float64(s.freshSegments))
		row.LastFreshNS = tables.Just(s.lastFreshNS)
	}
	row.FirstPayloadNS, row.LastPayloadNS = tables.Just(s.firstPayloadNS), tables.Just(s.lastPayloadNS)
	if ns := s.lastPayloadNS - s.firstPayloadNS; ns > 0 {
		row.ThroughputB = tables.Just(float64(s.seen.Bytes()) * 8 / seconds(ns))
	}
	if s.fromSYN {
		row.InitialWindow = s.initialWindow
		if s.acks == 0 {
			row.InitialWindow = row.UniqueBytes
		}
	}
}

// ackRow fills in the columns about acknowledgements.
func (s *stream) ackRow(row *tables.Direction) {
	if s.acks > 0 {
		row.FirstACKNS, row.LastACKNS = tables.Just(s.firstACKNS), tables.Just(s.lastACKNS)
	}
	if s.finACKNS != 0 {
		row.FINACKNS = tables.Just(s.finACKNS)
	}
	row.RoundTrips(&s.rtt)
}

func (l *loss) row(row *tables.Direction) {
	row.RetransmittedSegments, row.RetransmittedBytes = l.twiceSegments, l.twiceBytes
	row.HoleSegments, row.HoleBytes, row.ReorderedSegments = l.holeSegments, l.holeBytes, l.reordered
	row.RTO, row.Fast, row.Recovery = l.causes[RTO], l.causes[Fast], l.causes[Recovery]
	row.TailProbe, row.Probe = l.causes[TailProbe], l.causes[Probe]
	row.Unneeded, row.UnknownCause = l.causes[Unneeded], l.causes[Unknown]
	row.Spurious = l.spurious
}

// scaled reports whether the windows of the flow are known in bytes: both SYNs
// have a scale, or the options of both SYNs were completely captured.
func (f *Flow) scaled() bool {
	up, down := &f.half[Up], &f.half[Down]
	return (up.hasScale && down.hasScale) || (up.synWhole && down.synWhole)
}

func (s *stream) windowRow(row *tables.Direction) {
	row.WindowMin = tables.Just(int64(s.windowMin) << s.shift)
	row.WindowMax = tables.Just(int64(s.windowMax) << s.shift)
	row.WindowMean = tables.Just(float64(s.windowSum<<s.shift) / float64(s.windows))
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func milliseconds(ns int64) tables.Maybe[float64] { return tables.Just(float64(ns) / 1e6) }

// Spoken reports whether the flow has payload or a segment that is neither SYN
// nor RST. Otherwise it has no round trips and no acknowledgements.
func (f *Flow) Spoken() bool { return f.streams != nil }

// RTT returns the round trips of a direction's data in ns. Each one is from the
// capture to the receiver and back, at the time of the acknowledgement.
func (f *Flow) RTT(dir uint8) *hist.Series {
	if f.streams == nil {
		return &hist.Series{}
	}
	return &f.streams[dir].rtt
}

// ACKSizes returns the numbers of newly acknowledged bytes of a direction's
// data.
func (f *Flow) ACKSizes(dir uint8) *hist.Sizes {
	if f.streams == nil {
		return &hist.Sizes{}
	}
	return &f.streams[dir].sizes
}
