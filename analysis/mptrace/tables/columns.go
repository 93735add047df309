package tables

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// column is one column of a table of rows R.
type column[R any] struct {
	name, unit string // unit: "" for names, numbers and truths
	kind       arrow.DataType
	nullable   bool
	add        func(array.Builder, *R)
}

var connectionColumns = []column[Connection]{
	int32Column("connection_id", "", func(r *Connection) int32 { return r.ConnectionID }),
	stringColumn("kind", "", func(r *Connection) string { return r.Kind }),
	int32Column("mptcp_version", "", func(r *Connection) int32 { return r.MPTCPVersion }),
	stringColumn("client", "", func(r *Connection) string { return r.Client }),
	int32Column("client_port", "", func(r *Connection) int32 { return r.ClientPort }),
	stringColumn("server", "", func(r *Connection) string { return r.Server }),
	int32Column("server_port", "", func(r *Connection) int32 { return r.ServerPort }),
	int64Column("start_ns", "ns", func(r *Connection) int64 { return r.StartNS }),
	float64Column("duration_s", "s", func(r *Connection) float64 { return r.DurationS }),
	boolColumn("syn_seen", "", func(r *Connection) bool { return r.SYNSeen }),
	boolColumn("fallback", "", func(r *Connection) bool { return r.Fallback }),
	stringColumn("token", "", func(r *Connection) string { return r.Token }),
	int32Column("subflows", "subflows", func(r *Connection) int32 { return r.Subflows }),
	int64Column("bytes_up", "bytes", func(r *Connection) int64 { return r.BytesUp }),
	int64Column("bytes_down", "bytes", func(r *Connection) int64 { return r.BytesDown }),
	int64Column("reinjected_up", "bytes", func(r *Connection) int64 { return r.ReinjectedUp }),
	int64Column("reinjected_down", "bytes", func(r *Connection) int64 { return r.ReinjectedDown }),
	stringColumn("closed", "", func(r *Connection) string { return r.Closed }),
	stringColumn("interfaces", "", func(r *Connection) string { return r.Interfaces }),
}

var subflowColumns = []column[Subflow]{
	int32Column("connection_id", "", func(r *Subflow) int32 { return r.ConnectionID }),
	int32Column("subflow_id", "", func(r *Subflow) int32 { return r.SubflowID }),
	stringColumn("role", "", func(r *Subflow) string { return r.Role }),
	stringColumn("interface", "", func(r *Subflow) string { return r.Interface }),
	stringColumn("client", "", func(r *Subflow) string { return r.Client }),
	int32Column("client_port", "", func(r *Subflow) int32 { return r.ClientPort }),
	stringColumn("server", "", func(r *Subflow) string { return r.Server }),
	int32Column("server_port", "", func(r *Subflow) int32 { return r.ServerPort }),
	int64Column("start_ns", "ns", func(r *Subflow) int64 { return r.StartNS }),
	float64Column("duration_s", "s", func(r *Subflow) float64 { return r.DurationS }),
	maybeFloat64("join_delay_ms", "ms", func(r *Subflow) *float64 { return r.JoinDelayMS }),
	boolColumn("established", "", func(r *Subflow) bool { return r.Established }),
	boolColumn("backup", "", func(r *Subflow) bool { return r.Backup }),
	maybeFloat64("rtt_handshake_ms", "ms", func(r *Subflow) *float64 { return r.RTTHandshakeMS }),
	int64Column("segments_up", "segments", func(r *Subflow) int64 { return r.SegmentsUp }),
	int64Column("segments_down", "segments", func(r *Subflow) int64 { return r.SegmentsDown }),
	int64Column("payload_up", "bytes", func(r *Subflow) int64 { return r.PayloadUp }),
	int64Column("payload_down", "bytes", func(r *Subflow) int64 { return r.PayloadDown }),
	int64Column("unique_up", "bytes", func(r *Subflow) int64 { return r.UniqueUp }),
	int64Column("unique_down", "bytes", func(r *Subflow) int64 { return r.UniqueDown }),
	int64Column("retransmitted_segments_up", "segments", func(r *Subflow) int64 { return r.RetransmittedSegmentsUp }),
	int64Column("retransmitted_segments_down", "segments", func(r *Subflow) int64 { return r.RetransmittedSegmentsDown }),
	int64Column("retransmitted_bytes_up", "bytes", func(r *Subflow) int64 { return r.RetransmittedBytesUp }),
	int64Column("retransmitted_bytes_down", "bytes", func(r *Subflow) int64 { return r.RetransmittedBytesDown }),
	maybeInt64("first_payload_ns", "ns", func(r *Subflow) *int64 { return r.FirstPayloadNS }),
	maybeInt64("last_payload_ns", "ns", func(r *Subflow) *int64 { return r.LastPayloadNS }),
	boolColumn("syn_seen", "", func(r *Subflow) bool { return r.SYNSeen }),
	int32Column("syn_retries", "segments", func(r *Subflow) int32 { return r.SYNRetries }),
	stringColumn("closed", "", func(r *Subflow) string { return r.Closed }),
}

func int32Column[R any](name, unit string, get func(*R) int32) column[R] {
	return column[R]{name, unit, arrow.PrimitiveTypes.Int32, false, func(b array.Builder, r *R) {
		b.(*array.Int32Builder).Append(get(r))
	}}
}

func int64Column[R any](name, unit string, get func(*R) int64) column[R] {
	return column[R]{name, unit, arrow.PrimitiveTypes.Int64, false, func(b array.Builder, r *R) {
		b.(*array.Int64Builder).Append(get(r))
	}}
}

func float64Column[R any](name, unit string, get func(*R) float64) column[R] {
	return column[R]{name, unit, arrow.PrimitiveTypes.Float64, false, func(b array.Builder, r *R) {
		b.(*array.Float64Builder).Append(get(r))
	}}
}

func stringColumn[R any](name, unit string, get func(*R) string) column[R] {
	return column[R]{name, unit, arrow.BinaryTypes.String, false, func(b array.Builder, r *R) {
		b.(*array.StringBuilder).Append(get(r))
	}}
}

func boolColumn[R any](name, unit string, get func(*R) bool) column[R] {
	return column[R]{name, unit, arrow.FixedWidthTypes.Boolean, false, func(b array.Builder, r *R) {
		b.(*array.BooleanBuilder).Append(get(r))
	}}
}

func maybeFloat64[R any](name, unit string, get func(*R) *float64) column[R] {
	return column[R]{name, unit, arrow.PrimitiveTypes.Float64, true, func(b array.Builder, r *R) {
		if v := get(r); v != nil {
			b.(*array.Float64Builder).Append(*v)
		} else {
			b.AppendNull()
		}
	}}
}

func maybeInt64[R any](name, unit string, get func(*R) *int64) column[R] {
	return column[R]{name, unit, arrow.PrimitiveTypes.Int64, true, func(b array.Builder, r *R) {
		if v := get(r); v != nil {
			b.(*array.Int64Builder).Append(*v)
		} else {
			b.AppendNull()
		}
	}}
}
