package mptrace

import (
	"fmt"
	"slices"
	"strings"

	"mplab/analysis/mptrace/tables"
)

// Result makes the rows of all that was added; interfaces holds the names for
// the interface numbers of the packets.
func (e *Engine) Result(interfaces []string) *tables.Result {
	r := &tables.Result{
		Schema: tables.Schema, Connections: []tables.Connection{}, Subflows: []tables.Subflow{},
		Files: []tables.File{}, Warnings: e.warnings,
	}
	for _, c := range e.conns {
		r.Connections = append(r.Connections, c.row(interfaces))
		for _, f := range c.flows {
			r.Subflows = append(r.Subflows, c.subflowRow(f, interfaces))
			e.note(c, f, &r.Warnings)
		}
		for dir := range c.data {
			r.Warnings.IntervalBytesFilled += int64(c.data[dir].seen.Filled())
		}
	}
	return r
}

func (e *Engine) note(c *conn, f *flow, w *tables.Warnings) {
	for dir := range f.half {
		h := &f.half[dir]
		w.IntervalBytesFilled += int64(h.seen.Filled() + h.data.own.Filled() + h.data.unmapped.Filled())
		if c.mptcp && !c.fellBack() {
			w.UnmappedBytes += int64(h.data.unmapped.Bytes())
		}
	}
}

func (c *conn) row(interfaces []string) tables.Connection {
	first := c.flows[0]
	row := tables.Connection{
		ConnectionID: c.id, Kind: "tcp", MPTCPVersion: -1,
		Client: first.ends[client].addr.String(), ClientPort: int32(first.ends[client].port),
		Server: first.ends[server].addr.String(), ServerPort: int32(first.ends[server].port),
		StartNS: c.start, DurationS: seconds(c.last - c.start),
		SYNSeen: !first.additional && first.synNS != 0, Fallback: c.fellBack(),
		BytesUp: c.bytes(client), BytesDown: c.bytes(server), Closed: c.closed(),
	}
	if c.mptcp {
		row.Kind, row.MPTCPVersion = "mptcp", c.version
		row.ReinjectedUp, row.ReinjectedDown = int64(c.data[client].reinjected), int64(c.data[server].reinjected)
		if c.hasToken[server] {
			row.Token = fmt.Sprintf("%08x", c.token[server])
		}
	}
	var names []string
	for _, f := range c.flows {
		if !c.subflowEstablished(f) {
			continue
		}
		row.Subflows++
		if name := interfaces[f.iface]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	row.Interfaces = strings.Join(names, ",")
	return row
}

func (c *conn) subflowRow(f *flow, interfaces []string) tables.Subflow {
	up, down := &f.half[client], &f.half[server]
	row := tables.Subflow{
		ConnectionID: c.id, SubflowID: f.id, Role: "initial", Interface: interfaces[f.iface],
		Client: f.ends[client].addr.String(), ClientPort: int32(f.ends[client].port),
		Server: f.ends[server].addr.String(), ServerPort: int32(f.ends[server].port),
		StartNS: f.start, DurationS: seconds(f.last - f.start),
		Established: c.subflowEstablished(f), Backup: f.backup, RTTHandshakeMS: f.handshakeRTT(),
		SegmentsUp: up.segments, SegmentsDown: down.segments,
		PayloadUp: up.payload, PayloadDown: down.payload,
		UniqueUp: int64(up.seen.Bytes()), UniqueDown: int64(down.seen.Bytes()),
		RetransmittedSegmentsUp: up.retransSegments, RetransmittedSegmentsDown: down.retransSegments,
		RetransmittedBytesUp: up.retransed, RetransmittedBytesDown: down.retransed,
		SYNSeen: f.synNS != 0, SYNRetries: max(0, f.syns-1), Closed: f.closed(),
	}
	if f.additional {
		row.Role = "additional"
		if first := c.flows[0]; !first.additional && first.synNS != 0 && f.synNS != 0 {
			row.JoinDelayMS = milliseconds(f.synNS - first.synNS)
		}
	}
	if up.payload+down.payload > 0 {
		row.FirstPayloadNS, row.LastPayloadNS = &f.firstPayload, &f.lastPayload
	}
	return row
}

// handshakeRTT is the time from SYN to third ACK: one round trip wherever the
// capture was made. It is not known when SYN or SYN/ACK were sent again.
func (f *flow) handshakeRTT() *float64 {
	if f.syns != 1 || f.synAcks != 1 || f.ackNS == 0 {
		return nil
	}
	return milliseconds(f.ackNS - f.synNS)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func milliseconds(ns int64) *float64 {
	ms := float64(ns) / 1e6
	return &ms
}
