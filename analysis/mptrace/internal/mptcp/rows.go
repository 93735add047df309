package mptcp

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// totals holds sums over the subflows of a connection whose rows are written.
type totals struct {
	established, used    int32
	joinNS               int64 // time of the first MP_JOIN SYN; 0: none
	interfaces, networks []string
	open, fin            bool // a subflow that counts for the closing is open, or ended by FIN
	closing              bool // a subflow counts for the closing
	first                tables.Subflow
	side                 [2]sideTotals
}

type sideTotals struct {
	segments, wire, bytes, unique int64
	mappings                      int64
	segmentMax, segmentMin        int64
	firstNS, lastNS               tables.Maybe[int64]
}

func (t *sideTotals) add(d *tables.Direction) {
	t.segments += d.DataSegments
	t.wire += d.WireSegments
	t.bytes += d.Bytes
	t.unique += d.UniqueBytes
	t.mappings += d.Mappings
	t.segmentMax = max(t.segmentMax, d.SegmentMax)
	if d.SegmentMin > 0 && (t.segmentMin == 0 || d.SegmentMin < t.segmentMin) {
		t.segmentMin = d.SegmentMin
	}
	if d.FirstPayloadNS.Known && (!t.firstNS.Known || d.FirstPayloadNS.Value < t.firstNS.Value) {
		t.firstNS = d.FirstPayloadNS
	}
	if d.LastPayloadNS.Known && (!t.lastNS.Known || d.LastPayloadNS.Value > t.lastNS.Value) {
		t.lastNS = d.LastPayloadNS
	}
}

// writeSub writes the rows of a subflow that has ended.
func (e *Engine) writeSub(s *Sub) {
	c := s.Conn
	if c.totals == nil {
		c.totals = e.spare.totals.get()
	}
	row := e.out.Subflows.Next()
	s.row(row)
	c.totals.add(row, s)
	for dir := range uint8(2) {
		e.writeDirection(s, dir)
	}
	for _, h := range s.half {
		if h == nil {
			continue
		}
		e.warnings.IntervalBytesFilled += int64(h.unmapped.Filled())
		if c.fallback == noNote {
			e.warnings.UnmappedBytes += int64(h.unmapped.Bytes())
		}
	}
}

// add adds a subflow to the totals.
func (t *totals) add(row *tables.Subflow, s *Sub) {
	if s.ID == 0 {
		t.first = *row
	}
	if j := s.joined; j != nil && j.synNS != 0 && (t.joinNS == 0 || j.synNS < t.joinNS) {
		t.joinNS = j.synNS
	}
	if row.Established || s.Conn.made == 1 {
		t.closing = true
		t.open = t.open || row.Closed == "open"
		t.fin = t.fin || row.Closed == "fin"
	}
	if !row.Established {
		return
	}
	t.established++
	if row.Used {
		t.used++
	}
	t.interfaces = appendNew(t.interfaces, s.Interface)
	t.networks = appendNew(t.networks, s.Network)
}

func appendNew(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// row fills in the row of a subflow.
func (s *Sub) row(row *tables.Subflow) {
	c := s.Conn
	s.Flow.Row(row)
	if s.Turned {
		turn(row)
	}
	row.ConnectionID, row.SubflowID, row.Role = c.ID, s.ID, "initial"
	row.Interface, row.Network, row.OpenedBy = s.Interface, s.Network, sideNames[s.turn]
	row.Established, row.HMAC = s.established(), s.joined.hmac()
	row.Backup = s.side[Up].backup || s.side[Down].backup
	row.Used = row.PayloadUp+row.PayloadDown > 0
	if s.Additional {
		row.Role = "additional"
		if s.joined.synNS != 0 && c.capableNS != 0 {
			row.JoinDelayMS = tables.Just(milliseconds(s.joined.synNS - c.capableNS))
		}
	}
	if s.AddressID >= 0 {
		row.AddressID = tables.Just(s.AddressID)
	}
	if s.resetReason >= 0 {
		row.ResetReason = tables.Just(int32(s.resetReason))
	}
}

var sideNames = [2]string{"client", "server"}

// turn swaps the sides in the row of a flow that the server opened.
func turn(row *tables.Subflow) {
	row.Client, row.Server = row.Server, row.Client
	row.ClientPort, row.ServerPort = row.ServerPort, row.ClientPort
	row.PayloadUp, row.PayloadDown = row.PayloadDown, row.PayloadUp
	row.UniqueUp, row.UniqueDown = row.UniqueDown, row.UniqueUp
	switch row.ResetBy {
	case sideNames[Up]:
		row.ResetBy = sideNames[Down]
	case sideNames[Down]:
		row.ResetBy = sideNames[Up]
	}
}

// writeDirection writes the rows at level tcp of a subflow's direction.
func (e *Engine) writeDirection(s *Sub, dir uint8) {
	c, name, from := s.Conn, tables.Directions[dir], s.flowDir(dir)
	row := e.out.Directions.Next()
	s.Flow.DirectionRow(from, row)
	row.ConnectionID, row.SubflowID, row.Level, row.Direction = c.ID, s.ID, tables.LevelTCP, name
	if h := s.half[dir]; h != nil {
		row.Mappings, row.ReinjectedBytes = h.mappings, int64(h.reinjected)
	}
	c.totals.side[dir].add(row)
	if !s.Flow.Spoken() {
		return
	}
	e.seriesRows(c, s.ID, tables.LevelTCP, dir, s.Flow.RTT(from), s.Flow.ACKSizes(from))
	if e.rates {
		e.rateRow(c, s.ID, tables.LevelTCP, dir, &s.side[dir].rate)
	}
}

// writeConn writes the rows of a connection; those of its subflows must be
// written.
func (e *Engine) writeConn(c *Conn) {
	row := e.out.Connections.Next()
	c.row(row)
	if e.options.Describe != nil {
		e.options.Describe(row, c)
	}
	if !c.plain {
		for dir := range uint8(2) {
			e.writeData(c, dir)
		}
	}
	e.eventRows(c)
	if e.observer != nil {
		e.observer.End(c, row)
	}
}

// row fills in the row of a connection.
func (c *Conn) row(row *tables.Connection) {
	t := c.totals
	row.ConnectionID, row.Kind, row.MPTCPVersion = c.ID, "tcp", c.version
	row.Client, row.ClientPort, row.Server, row.ServerPort = t.first.Client, t.first.ClientPort, t.first.Server, t.first.ServerPort
	row.StartNS, row.DurationS = c.startNS, seconds(c.lastNS-c.startNS)
	row.SYNSeen = t.first.SYNSeen && t.first.Role == "initial"
	row.Fallback, row.FallbackCause = c.fallback != noNote, noteTexts[c.fallback]
	row.Subflows, row.SubflowsAsked, row.SubflowsUsed = t.established, c.made, t.used
	row.BytesUp, row.BytesDown = t.side[Up].unique, t.side[Down].unique
	row.Handovers, row.Closed = c.handovers, c.closed()
	row.Interfaces, row.Networks = strings.Join(t.interfaces, ","), strings.Join(t.networks, ",")
	m := c.multi
	if m == nil {
		return
	}
	row.Kind, row.Checksum = "mptcp", c.checksum
	row.TokenClient, row.Token = m.tokenText(Up), m.tokenText(Down)
	if c.capableNS != 0 && t.joinNS != 0 {
		row.JoinDelayMS = tables.Just(milliseconds(t.joinNS - c.capableNS))
	}
	if !c.plain {
		row.BytesUp, row.BytesDown = 0, 0
		if m.data != nil {
			row.BytesUp, row.BytesDown = int64(m.data[Up].unique), int64(m.data[Down].unique)
			row.ReinjectedUp, row.ReinjectedDn = int64(m.data[Up].reinjected), int64(m.data[Down].reinjected)
		}
	}
}

func (m *multi) tokenText(side int) string {
	if !m.hasToken[side] {
		return ""
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, m.token[side]))
}

// dataClosed reports whether the connection itself ended, independent of its
// subflows (RFC 8684 §3.3.3 and §3.5).
func (c *Conn) dataClosed() bool {
	return c.fastclose || c.multi != nil && c.multi.data != nil && c.multi.data[Up].finNS != 0 && c.multi.data[Down].finNS != 0
}

// closed returns how a connection ended. The end of the connection takes
// precedence over the ends of its subflows.
func (c *Conn) closed() string {
	t := c.totals
	switch {
	case c.fastclose:
		return "fastclose"
	case c.dataClosed():
		return "fin"
	case !t.closing || t.open:
		return "open"
	case t.fin:
		return "fin"
	}
	return "rst"
}

func (s *Sub) retransmissionRow(r *tcp.Retransmission) tables.Retransmission {
	kind := "twice"
	if r.Hole {
		kind = "hole"
	}
	dir, start := s.flowDir(r.Dir), r.Start
	if side := &s.side[dir]; side.hasISN {
		start = side.isn + 1
	}
	return tables.Retransmission{
		ConnectionID: s.Conn.ID, SubflowID: s.ID, Direction: tables.Directions[dir], TimeNS: r.TimeNS,
		Seq: max(0, int64(r.Seq-start)), Bytes: int64(r.Bytes), Kind: kind, Cause: r.Cause.String(), Spurious: r.Spurious,
		SinceFirstMS: since(r.SinceFirstNS), SinceLastMS: since(r.SinceLastNS), SinceSegmentMS: since(r.SinceSegmentNS),
	}
}

func since(ns int64) tables.Maybe[float64] {
	if ns < 0 {
		return tables.Maybe[float64]{}
	}
	return tables.Just(milliseconds(ns))
}

// known returns a time that is known unless it is 0.
func known(ns int64) tables.Maybe[int64] { return tables.Maybe[int64]{Value: ns, Known: ns != 0} }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }
