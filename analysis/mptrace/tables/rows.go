// Package tables holds the rows that a trace becomes, and writes them as
// Parquet, as JSON and as text.
package tables

// Schema is the version of the rows: it grows when a column changes meaning
// or goes away, not when one is added.
const Schema = 1

// Result is all that is known of a set of captures.
type Result struct {
	Schema      int          `json:"schema"`
	Connections []Connection `json:"connections"`
	Subflows    []Subflow    `json:"subflows"`
	Files       []File       `json:"files"`
	Warnings    Warnings     `json:"warnings"`
}

// Connection is a TCP connection, or an MPTCP connection with all its subflows.
type Connection struct {
	ConnectionID   int32   `json:"connection_id"`
	Kind           string  `json:"kind"`
	MPTCPVersion   int32   `json:"mptcp_version"`
	Client         string  `json:"client"`
	ClientPort     int32   `json:"client_port"`
	Server         string  `json:"server"`
	ServerPort     int32   `json:"server_port"`
	StartNS        int64   `json:"start_ns"`
	DurationS      float64 `json:"duration_s"`
	SYNSeen        bool    `json:"syn_seen"`
	Fallback       bool    `json:"fallback"`
	Token          string  `json:"token"`
	Subflows       int32   `json:"subflows"`
	BytesUp        int64   `json:"bytes_up"`
	BytesDown      int64   `json:"bytes_down"`
	ReinjectedUp   int64   `json:"reinjected_up"`
	ReinjectedDown int64   `json:"reinjected_down"`
	Closed         string  `json:"closed"`
	Interfaces     string  `json:"interfaces"`
}

// Subflow is one TCP 4-tuple of a connection; a plain TCP connection has one.
type Subflow struct {
	ConnectionID              int32    `json:"connection_id"`
	SubflowID                 int32    `json:"subflow_id"`
	Role                      string   `json:"role"`
	Interface                 string   `json:"interface"`
	Client                    string   `json:"client"`
	ClientPort                int32    `json:"client_port"`
	Server                    string   `json:"server"`
	ServerPort                int32    `json:"server_port"`
	StartNS                   int64    `json:"start_ns"`
	DurationS                 float64  `json:"duration_s"`
	JoinDelayMS               *float64 `json:"join_delay_ms"`
	Established               bool     `json:"established"`
	Backup                    bool     `json:"backup"`
	RTTHandshakeMS            *float64 `json:"rtt_handshake_ms"`
	SegmentsUp                int64    `json:"segments_up"`
	SegmentsDown              int64    `json:"segments_down"`
	PayloadUp                 int64    `json:"payload_up"`
	PayloadDown               int64    `json:"payload_down"`
	UniqueUp                  int64    `json:"unique_up"`
	UniqueDown                int64    `json:"unique_down"`
	RetransmittedSegmentsUp   int64    `json:"retransmitted_segments_up"`
	RetransmittedSegmentsDown int64    `json:"retransmitted_segments_down"`
	RetransmittedBytesUp      int64    `json:"retransmitted_bytes_up"`
	RetransmittedBytesDown    int64    `json:"retransmitted_bytes_down"`
	FirstPayloadNS            *int64   `json:"first_payload_ns"`
	LastPayloadNS             *int64   `json:"last_payload_ns"`
	SYNSeen                   bool     `json:"syn_seen"`
	SYNRetries                int32    `json:"syn_retries"`
	Closed                    string   `json:"closed"`
}

// File says what was read of one capture.
type File struct {
	Name       string   `json:"name"`
	Format     string   `json:"format"`
	Packets    int64    `json:"packets"`
	TCP        int64    `json:"tcp_packets"`
	Dropped    int64    `json:"dropped"`
	Interfaces []string `json:"interfaces"`
	Partial    bool     `json:"partial"`
	Error      string   `json:"error"`
}

// Warnings counts what could not be used. Zeros are left out of the JSON.
type Warnings struct {
	// Frames that were not understood, by reason. Hidden: the capture ends
	// inside IPv6 extension headers, so what follows is not known.
	FramesMalformed   int64 `json:"frames_malformed,omitempty"`
	FramesTruncated   int64 `json:"frames_truncated,omitempty"`
	FramesHidden      int64 `json:"frames_hidden,omitempty"`
	FramesFragment    int64 `json:"frames_fragment,omitempty"`
	FramesUnknownLink int64 `json:"frames_unknown_link,omitempty"`
	// TCP segments that were first fragments: the rest of their payload is not counted.
	SegmentsFragmented int64 `json:"segments_fragmented,omitempty"`
	// TCP segments whose options the capture cut off, and those with an MPTCP option of no known form.
	OptionsCut       int64 `json:"options_cut,omitempty"`
	OptionsMalformed int64 `json:"options_malformed,omitempty"`
	// MP_JOIN with an HMAC that does not belong to the keys, and with a token of no known connection.
	HMACMismatch     int64 `json:"hmac_mismatch,omitempty"`
	JoinUnknownToken int64 `json:"join_unknown_token,omitempty"`
	// MP_CAPABLE that names another key than before.
	KeyChanged int64 `json:"key_changed,omitempty"`
	// Payload of MPTCP subflows for which no mapping was seen.
	UnmappedBytes int64 `json:"unmapped_bytes,omitempty"`
	// Mappings that lie nowhere near the connection's data.
	MappingOutOfRange int64 `json:"mapping_out_of_range,omitempty"`
	// Bytes taken as seen to bound the memory of one direction.
	IntervalBytesFilled int64 `json:"interval_bytes_filled,omitempty"`
}
