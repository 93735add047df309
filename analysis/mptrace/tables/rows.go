package tables

// Schema is the version of the rows. It increases when a column changes meaning
// or is removed, not when a column is added.
const Schema = 2

// Values of the columns direction and level.
const (
	Up   = "up"   // client → server
	Down = "down" // server → client

	LevelTCP   = "tcp"   // one subflow, by TCP sequence number
	LevelMPTCP = "mptcp" // a whole MPTCP connection, by data sequence number

	// NoSubflow is the subflow_id of rows about a whole connection.
	NoSubflow = -1
)

// Directions maps a direction number to its name.
var Directions = [2]string{Up, Down}

// Connection is a TCP connection, or an MPTCP connection with all its subflows.
type Connection struct {
	ConnectionID  int32          `json:"connection_id" doc:"number from 0, in the order of first packets"`
	Kind          string         `json:"kind" doc:"tcp; mptcp: MPTCP was asked for in the SYN, or seen later"`
	MPTCPVersion  int32          `json:"mptcp_version" doc:"0 or 1; −1 for tcp, and where no MP_CAPABLE was seen"`
	Client        string         `json:"client" doc:"address of the first subflow's client"`
	ClientPort    int32          `json:"client_port" doc:"port of the first subflow's client"`
	Server        string         `json:"server" doc:"address of the first subflow's server"`
	ServerPort    int32          `json:"server_port" doc:"port of the first subflow's server"`
	Host          string         `json:"host" doc:"name of the server: from TLS SNI, HTTP Host, a log of the proxy's agent or a DNS answer; empty when not known"`
	HostSource    string         `json:"host_source" doc:"sni, http, proxy (named to a proxy), log or dns; empty when not known"`
	Destination   string         `json:"destination" doc:"where a proxied connection really goes: from a log of agent or proxy, or from the first payload; empty when not known"`
	DestPort      int32          `json:"destination_port" doc:"0 when not known"`
	Application   string         `json:"application" doc:"from a log of agent or proxy; empty when not known"`
	StartNS       int64          `json:"start_ns" unit:"ns" doc:"first packet, since 1970 UTC"`
	DurationS     float64        `json:"duration_s" unit:"s" doc:"first to last packet of all subflows"`
	SYNSeen       bool           `json:"syn_seen" doc:"the SYN that began it is in the capture; false for the rest of a connection that was open before"`
	Fallback      bool           `json:"fallback" doc:"MPTCP was asked for and the connection went on as plain TCP"`
	FallbackCause string         `json:"fallback_cause" doc:"handshake (the SYN/ACK had no MP_CAPABLE), no-dss (data came without a mapping), mp-fail, infinite-mapping; empty without fallback"`
	TokenClient   string         `json:"token_client" doc:"token of the client, 8 hexadecimal digits; empty when not known"`
	Token         string         `json:"token" doc:"token of the server, which the client's joins bear; empty for tcp and when not known"`
	Checksum      bool           `json:"checksum" doc:"data sequence signals carry checksums"`
	Subflows      int32          `json:"subflows" unit:"subflows" doc:"established subflows"`
	SubflowsAsked int32          `json:"subflows_asked" unit:"subflows" doc:"all subflows, also those never established"`
	SubflowsUsed  int32          `json:"subflows_used" unit:"subflows" doc:"established subflows that carried payload"`
	BytesUp       int64          `json:"bytes_up" unit:"bytes" doc:"payload of the application, each byte once"`
	BytesDown     int64          `json:"bytes_down" unit:"bytes" doc:"payload of the application, each byte once"`
	ReinjectedUp  int64          `json:"reinjected_up" unit:"bytes" doc:"payload that another subflow carried before"`
	ReinjectedDn  int64          `json:"reinjected_down" unit:"bytes" doc:"payload that another subflow carried before"`
	JoinDelayMS   Maybe[float64] `json:"join_delay_ms" unit:"ms" doc:"first MP_CAPABLE SYN to first MP_JOIN SYN; null when one was not seen"`
	Handovers     int32          `json:"handovers" doc:"times that the payload moved for good from subflows that then fell silent to another one"`
	Closed        string         `json:"closed" doc:"fin, rst, fastclose or open"`
	Interfaces    string         `json:"interfaces" doc:"interfaces of the established subflows in their order, by commas"`
	Networks      string         `json:"networks" doc:"their networks: wifi, cellular, … (see network in subflows)"`
}

// Subflow is one TCP 4-tuple of a connection; a plain TCP connection has one.
type Subflow struct {
	ConnectionID   int32          `json:"connection_id" doc:"the connection"`
	SubflowID      int32          `json:"subflow_id" doc:"number from 0 in its connection, by creation"`
	Role           string         `json:"role" doc:"initial, or additional (made by MP_JOIN)"`
	Interface      string         `json:"interface" doc:"interface on which the SYN, or else the first packet, was seen"`
	Network        string         `json:"network" doc:"wifi, cellular, ethernet, loopback or what --network says; empty when not known"`
	Client         string         `json:"client" doc:"address of the connection's client, also when the server opened the subflow"`
	ClientPort     int32          `json:"client_port" doc:"port of the client"`
	Server         string         `json:"server" doc:"address of the server"`
	ServerPort     int32          `json:"server_port" doc:"port of the server"`
	IPVersion      int32          `json:"ip_version" doc:"4 or 6"`
	StartNS        int64          `json:"start_ns" unit:"ns" doc:"first packet, since 1970 UTC"`
	DurationS      float64        `json:"duration_s" unit:"s" doc:"first to last packet"`
	JoinDelayMS    Maybe[float64] `json:"join_delay_ms" unit:"ms" doc:"first MP_CAPABLE SYN to first MP_JOIN SYN of this subflow; null for the initial subflow, and when the former was not seen"`
	OpenedBy       string         `json:"opened_by" doc:"client or server: who sent the SYN"`
	AddressID      Maybe[int32]   `json:"address_id" doc:"address id that the opener named in MP_JOIN"`
	Established    bool           `json:"established" doc:"the TCP handshake ended well, and for MPTCP the one of MP_CAPABLE or MP_JOIN; see trace-counting.md"`
	Used           bool           `json:"used" doc:"carried payload"`
	Backup         bool           `json:"backup" doc:"the B bit was set in MP_JOIN or in the last MP_PRIO, by either side"`
	HMAC           string         `json:"hmac" doc:"ok, wrong, or empty when there was none or the keys are not known"`
	PayloadUp      int64          `json:"payload_up" unit:"bytes" doc:"all payload, seen again included; more on each direction is in directions"`
	PayloadDown    int64          `json:"payload_down" unit:"bytes" doc:"all payload"`
	UniqueUp       int64          `json:"unique_up" unit:"bytes" doc:"payload, each sequence number once"`
	UniqueDown     int64          `json:"unique_down" unit:"bytes" doc:"payload, each sequence number once"`
	RTTHandshakeMS Maybe[float64] `json:"rtt_handshake_ms" unit:"ms" doc:"SYN to third ACK; null when one was not seen, or SYN or SYN/ACK came twice"`
	RTTServerMS    Maybe[float64] `json:"rtt_server_ms" unit:"ms" doc:"SYN to SYN/ACK: the part of rtt_handshake_ms between the capture and the listening end; null as that"`
	FirstPayloadNS Maybe[int64]   `json:"first_payload_ns" unit:"ns" doc:"first segment with payload in either direction, since 1970 UTC; null without payload"`
	LastPayloadNS  Maybe[int64]   `json:"last_payload_ns" unit:"ns" doc:"last segment with payload in either direction, since 1970 UTC"`
	SYNSeen        bool           `json:"syn_seen" doc:"its SYN is in the capture"`
	SYNRetries     int32          `json:"syn_retries" unit:"segments" doc:"SYNs after the first"`
	SYNACKRetries  int32          `json:"syn_ack_retries" unit:"segments" doc:"SYN/ACKs after the first"`
	Closed         string         `json:"closed" doc:"fin, rst or open"`
	ResetBy        string         `json:"reset_by" doc:"client or server when a RST ended it"`
	ResetReason    Maybe[int32]   `json:"reset_reason" doc:"reason in MP_TCPRST (RFC 8684 §3.6)"`
	Duplicates     int64          `json:"duplicates" unit:"packets" doc:"packets that the capture holds twice; they count nowhere else"`
}

// Direction describes the data that one side sent on a subflow (level tcp) or
// on all subflows of an MPTCP connection by data sequence number (level mptcp).
// Columns without meaning at a level are null or zero there.
type Direction struct {
	ConnectionID int32  `json:"connection_id" doc:"the connection"`
	SubflowID    int32  `json:"subflow_id" doc:"−1 at level mptcp"`
	Level        string `json:"level" doc:"tcp or mptcp"`
	Direction    string `json:"direction" doc:"up or down"`

	Segments        int64 `json:"segments" unit:"segments" doc:"all segments (level mptcp: segments with payload)"`
	DataSegments    int64 `json:"data_segments" unit:"segments" doc:"segments with payload"`
	WireSegments    int64 `json:"wire_segments" unit:"segments" doc:"estimate of the segments with payload on the wire: super-segments of the network card are divided by the MSS"`
	PureACKs        int64 `json:"pure_acks" unit:"segments" doc:"ACK without payload, SYN, FIN and RST"`
	SYNs            int64 `json:"syns" unit:"segments" doc:"with SYN, SYN/ACKs included"`
	FINs            int64 `json:"fins" unit:"segments" doc:"with FIN"`
	RSTs            int64 `json:"rsts" unit:"segments" doc:"with RST"`
	Pushes          int64 `json:"pushes" unit:"segments" doc:"with PSH"`
	Bytes           int64 `json:"bytes" unit:"bytes" doc:"all payload"`
	UniqueBytes     int64 `json:"unique_bytes" unit:"bytes" doc:"payload, each sequence number once"`
	MissingBytes    int64 `json:"missing_bytes" unit:"bytes" doc:"below the highest sequence number, never seen"`
	ReinjectedBytes int64 `json:"reinjected_bytes" unit:"bytes" doc:"payload new on its subflow that another one carried before"`

	RetransmittedSegments int64 `json:"retransmitted_segments" unit:"segments" doc:"with at least one byte seen before"`
	RetransmittedBytes    int64 `json:"retransmitted_bytes" unit:"bytes" doc:"payload seen before: bytes − unique_bytes"`
	HoleSegments          int64 `json:"hole_segments" unit:"segments" doc:"fill a hole: lost before the capture and sent again"`
	HoleBytes             int64 `json:"hole_bytes" unit:"bytes" doc:"payload that filled holes"`
	ReorderedSegments     int64 `json:"reordered_segments" unit:"segments" doc:"overtaken before the capture saw them"`
	RTO                   int64 `json:"rto" unit:"segments" doc:"retransmissions by cause: the timer"`
	Fast                  int64 `json:"fast" unit:"segments" doc:"fast retransmit"`
	Recovery              int64 `json:"recovery" unit:"segments" doc:"later losses of the same recovery"`
	TailProbe             int64 `json:"tail_probe" unit:"segments" doc:"tail loss probes"`
	Probe                 int64 `json:"probe" unit:"segments" doc:"keep-alives and zero-window probes"`
	Unneeded              int64 `json:"unneeded" unit:"segments" doc:"all of it had been acknowledged"`
	UnknownCause          int64 `json:"unknown_cause" unit:"segments" doc:"retransmissions for which no rule gave a cause"`
	Spurious              int64 `json:"spurious" unit:"segments" doc:"retransmissions that the receiver had twice: a DSACK said so, or they were unneeded"`
	DuplicateACKs         int64 `json:"duplicate_acks" unit:"segments" doc:"sent: same number, no payload, same window, while data was outstanding (RFC 5681 §2)"`

	RTTSamples int64          `json:"rtt_samples" unit:"samples" doc:"round trips from the capture to the receiver of this direction's data and back"`
	RTTMinMS   Maybe[float64] `json:"rtt_min_ms" unit:"ms" doc:"shortest"`
	RTTMeanMS  Maybe[float64] `json:"rtt_mean_ms" unit:"ms" doc:"mean"`
	RTTStdevMS Maybe[float64] `json:"rtt_stdev_ms" unit:"ms" doc:"of the samples (n − 1)"`
	RTTP25MS   Maybe[float64] `json:"rtt_p25_ms" unit:"ms" doc:"quantile of 25 %; quantiles are exact as long as all samples are kept (up to twice --samples), beyond that within 0.8 %"`
	RTTP50MS   Maybe[float64] `json:"rtt_p50_ms" unit:"ms" doc:"median"`
	RTTP75MS   Maybe[float64] `json:"rtt_p75_ms" unit:"ms" doc:"quantile of 75 %"`
	RTTP90MS   Maybe[float64] `json:"rtt_p90_ms" unit:"ms" doc:"quantile of 90 %"`
	RTTP95MS   Maybe[float64] `json:"rtt_p95_ms" unit:"ms" doc:"quantile of 95 %"`
	RTTP97MS   Maybe[float64] `json:"rtt_p97_ms" unit:"ms" doc:"quantile of 97 %"`
	RTTP98MS   Maybe[float64] `json:"rtt_p98_ms" unit:"ms" doc:"quantile of 98 %"`
	RTTP99MS   Maybe[float64] `json:"rtt_p99_ms" unit:"ms" doc:"quantile of 99 %"`
	RTTMaxMS   Maybe[float64] `json:"rtt_max_ms" unit:"ms" doc:"longest"`
	RTTLastMS  Maybe[float64] `json:"rtt_last_ms" unit:"ms" doc:"of the last sample"`

	WindowMin     Maybe[int64]   `json:"window_min" unit:"bytes" doc:"smallest receive window that this side announced, scaled, SYN and RST left out"`
	WindowMean    Maybe[float64] `json:"window_mean" unit:"bytes" doc:"mean over the segments that announced it"`
	WindowMax     Maybe[int64]   `json:"window_max" unit:"bytes" doc:"largest"`
	WindowScale   Maybe[int32]   `json:"window_scale" unit:"bits" doc:"announced in the SYN; null without"`
	ZeroWindows   int64          `json:"zero_windows" unit:"segments" doc:"that announced no window at all"`
	FlightMax     int64          `json:"flight_max" unit:"bytes" doc:"most bytes sent and not yet acknowledged, as seen at the capture"`
	FlightMean    Maybe[float64] `json:"flight_mean" unit:"bytes" doc:"mean over the segments with new payload"`
	InitialWindow int64          `json:"initial_window" unit:"bytes" doc:"payload sent before the first acknowledgement of payload"`
	MSS           Maybe[int32]   `json:"mss" unit:"bytes" doc:"announced in the SYN"`
	SegmentMax    int64          `json:"segment_max" unit:"bytes" doc:"largest payload of a segment"`
	SegmentMin    int64          `json:"segment_min" unit:"bytes" doc:"smallest payload that was not empty"`
	SACKPermitted bool           `json:"sack_permitted" doc:"announced in the SYN"`
	SACKs         int64          `json:"sacks" unit:"segments" doc:"segments with SACK blocks"`
	DSACKs        int64          `json:"dsacks" unit:"segments" doc:"of them, with a duplicate SACK (RFC 2883)"`
	Timestamps    bool           `json:"timestamps" doc:"segments carry timestamps"`
	TTLMin        int32          `json:"ttl_min" unit:"hops" doc:"smallest time to live, or hop limit"`
	TTLMax        int32          `json:"ttl_max" unit:"hops" doc:"largest time to live, or hop limit"`
	IdleMaxMS     float64        `json:"idle_max_ms" unit:"ms" doc:"longest time between two segments"`

	FirstNS        Maybe[int64] `json:"first_ns" unit:"ns" doc:"first segment, since 1970 UTC"`
	LastNS         Maybe[int64] `json:"last_ns" unit:"ns" doc:"last segment, since 1970 UTC"`
	FirstPayloadNS Maybe[int64] `json:"first_payload_ns" unit:"ns" doc:"first segment with payload, retransmissions included, since 1970 UTC"`
	LastPayloadNS  Maybe[int64] `json:"last_payload_ns" unit:"ns" doc:"last segment with payload, retransmissions included"`
	LastFreshNS    Maybe[int64] `json:"last_fresh_ns" unit:"ns" doc:"last segment with new payload"`
	FirstACKNS     Maybe[int64] `json:"first_ack_ns" unit:"ns" doc:"first time that the other side acknowledged payload of this direction, since 1970 UTC"`
	LastACKNS      Maybe[int64] `json:"last_ack_ns" unit:"ns" doc:"last time that the other side acknowledged payload of this direction"`
	FINACKNS       Maybe[int64] `json:"fin_ack_ns" unit:"ns" doc:"when the FIN of this direction was acknowledged"`

	Mappings    int64          `json:"mappings" unit:"mappings" doc:"DSS mappings (level mptcp: of all subflows)"`
	Bursts      int64          `json:"bursts" unit:"bursts" doc:"runs of consecutive new data on one subflow (level mptcp)"`
	Switches    int64          `json:"switches" doc:"changes of the subflow from one burst to the next (level mptcp)"`
	SwitchesPS  Maybe[float64] `json:"switches_per_s" unit:"1/s" doc:"over the time from first to last new data (level mptcp)"`
	DataFINNS   Maybe[int64]   `json:"data_fin_ns" unit:"ns" doc:"first DATA_FIN (level mptcp)"`
	ThroughputB Maybe[float64] `json:"throughput_bps" unit:"bit/s" doc:"unique_bytes over the time from first to last payload"`
}

// RTT is a round-trip sample: from the capture to the receiver of the data and
// back.
type RTT struct {
	ConnectionID int32   `json:"connection_id" doc:"the connection"`
	SubflowID    int32   `json:"subflow_id" doc:"−1 at level mptcp"`
	Level        string  `json:"level" doc:"tcp, or mptcp: data until its DATA_ACK, with no rule of Karn's (reordering and reinjection are part of it)"`
	Direction    string  `json:"direction" doc:"of the data"`
	TimeNS       int64   `json:"time_ns" unit:"ns" doc:"of the acknowledgement, since 1970 UTC"`
	RTTMS        float64 `json:"rtt_ms" unit:"ms" doc:"the round trip"`
	Weight       int32   `json:"weight" unit:"samples" doc:"how many samples it stands for: with more than twice --samples of them every second, fourth, … is kept"`
}

// Retransmission is a segment that was sent again or that filled a hole.
type Retransmission struct {
	ConnectionID   int32          `json:"connection_id" doc:"the connection"`
	SubflowID      int32          `json:"subflow_id" doc:"number of the subflow in its connection"`
	Direction      string         `json:"direction" doc:"up or down"`
	TimeNS         int64          `json:"time_ns" unit:"ns" doc:"since 1970 UTC"`
	Seq            int64          `json:"seq" unit:"bytes" doc:"relative sequence number; 0 is the first byte of payload"`
	Bytes          int64          `json:"bytes" unit:"bytes" doc:"that were seen before, or that filled the hole"`
	Kind           string         `json:"kind" doc:"twice: seen before; hole: lost before the capture"`
	Cause          string         `json:"cause" doc:"rto, fast, recovery, tail-probe, probe, unneeded or unknown"`
	Spurious       bool           `json:"spurious" doc:"a DSACK said that it was not needed, or it came after its acknowledgement"`
	SinceFirstMS   Maybe[float64] `json:"since_first_ms" unit:"ms" doc:"since these bytes were first seen"`
	SinceLastMS    Maybe[float64] `json:"since_last_ms" unit:"ms" doc:"since they were last seen"`
	SinceSegmentMS Maybe[float64] `json:"since_segment_ms" unit:"ms" doc:"since the segment before this one in its direction"`
}

// Reinjection is a range of data that another subflow had carried before.
type Reinjection struct {
	ConnectionID    int32          `json:"connection_id" doc:"the connection"`
	Direction       string         `json:"direction" doc:"up or down"`
	TimeNS          int64          `json:"time_ns" unit:"ns" doc:"since 1970 UTC"`
	Offset          int64          `json:"offset" unit:"bytes" doc:"first byte, from the first byte of the direction's data"`
	Bytes           int64          `json:"bytes" unit:"bytes" doc:"length of the range"`
	FromSubflow     int32          `json:"from_subflow" doc:"that carried it first"`
	ToSubflow       int32          `json:"to_subflow" doc:"that carries it now"`
	SinceOriginalMS float64        `json:"since_original_ms" unit:"ms" doc:"since it was first seen"`
	Cause           string         `json:"cause" doc:"rto, window, closed or unknown; see trace-counting.md"`
	Acked           bool           `json:"acked" doc:"a DATA_ACK had covered all of it before: of no use"`
	CopyFirst       Maybe[bool]    `json:"copy_first" doc:"null: it takes both ends to know; see reinjection_ends of mptrace ends"`
	GainMS          Maybe[float64] `json:"gain_ms" unit:"ms" doc:"null, as copy_first"`
}

// Burst is a run of consecutive new data on one subflow.
type Burst struct {
	ConnectionID int32   `json:"connection_id" doc:"the connection"`
	SubflowID    int32   `json:"subflow_id" doc:"number of the subflow in its connection"`
	Direction    string  `json:"direction" doc:"up or down"`
	StartNS      int64   `json:"start_ns" unit:"ns" doc:"since 1970 UTC"`
	DurationS    float64 `json:"duration_s" unit:"s" doc:"first to last segment"`
	Offset       int64   `json:"offset" unit:"bytes" doc:"first byte, from the first byte of the direction's data"`
	Bytes        int64   `json:"bytes" unit:"bytes" doc:"new data of the burst"`
	Packets      int64   `json:"packets" unit:"segments" doc:"its segments"`
	Weight       int32   `json:"weight" unit:"bursts" doc:"how many bursts it stands for, as for rtt"`
}

// Throughput describes the data of one direction in a window of 250 segments
// with payload.
type Throughput struct {
	ConnectionID int32   `json:"connection_id" doc:"the connection"`
	SubflowID    int32   `json:"subflow_id" doc:"−1 at level mptcp"`
	Level        string  `json:"level" doc:"tcp or mptcp"`
	Direction    string  `json:"direction" doc:"up or down"`
	StartNS      int64   `json:"start_ns" unit:"ns" doc:"last segment of the window before, or first segment"`
	DurationS    float64 `json:"duration_s" unit:"s" doc:"to the last segment of the window"`
	Bytes        int64   `json:"bytes" unit:"bytes" doc:"new payload"`
	Packets      int32   `json:"packets" unit:"segments" doc:"250; less in the last window"`
}

// ACKSize counts acknowledgements by the number of newly acknowledged bytes.
type ACKSize struct {
	ConnectionID int32  `json:"connection_id" doc:"the connection"`
	SubflowID    int32  `json:"subflow_id" doc:"−1 at level mptcp"`
	Level        string `json:"level" doc:"tcp or mptcp"`
	Direction    string `json:"direction" doc:"of the data"`
	Bytes        int64  `json:"bytes" unit:"bytes" doc:"acknowledged; exact below 4096 different sizes per direction, beyond that the lower end of a class 1/64 wide"`
	Count        int64  `json:"count" unit:"acknowledgements" doc:"how many acknowledgements did so"`
}

// Event is a moment in the life of a connection or subflow.
type Event struct {
	ConnectionID int32        `json:"connection_id" doc:"the connection"`
	SubflowID    int32        `json:"subflow_id" doc:"on which it was seen"`
	TimeNS       int64        `json:"time_ns" unit:"ns" doc:"since 1970 UTC"`
	Direction    string       `json:"direction" doc:"who sent it"`
	Event        string       `json:"event" doc:"syn, established, first-data, fin, rst, mp-capable, mp-join, add-addr, add-addr-echo, remove-addr, mp-prio, mp-fail, mp-fastclose, mp-tcprst, infinite-mapping, data-fin, fallback, handover, zero-window, window-open, rst-ignored (the receiver of the RST dropped it)"`
	Address      string       `json:"address" doc:"of ADD_ADDR"`
	Port         Maybe[int32] `json:"port" doc:"of ADD_ADDR"`
	AddressID    Maybe[int32] `json:"address_id" doc:"of MP_JOIN, ADD_ADDR, REMOVE_ADDR, MP_PRIO"`
	Value        Maybe[int64] `json:"value" doc:"mp-prio: the B bit; mp-fail: the data sequence number, relative; mp-tcprst: the reason; handover: the subflow that was left"`
	Detail       string       `json:"detail" doc:"what else there is to say, for people"`
}

// Point is a point of a time-sequence diagram.
type Point struct {
	ConnectionID int32  `json:"connection_id" doc:"the connection"`
	SubflowID    int32  `json:"subflow_id" doc:"on which it was seen"`
	Level        string `json:"level" doc:"tcp for plain TCP, mptcp for data sequence numbers"`
	Direction    string `json:"direction" doc:"of the data"`
	TimeNS       int64  `json:"time_ns" unit:"ns" doc:"since 1970 UTC"`
	Kind         string `json:"kind" doc:"data (new), retransmission, reinjection, ack or window (right edge of the receive window); acknowledgements that tell nothing new are left out"`
	Offset       int64  `json:"offset" unit:"bytes" doc:"first byte, from the first byte of the direction's data; for ack and window the number that was told"`
	Bytes        int64  `json:"bytes" unit:"bytes" doc:"of data, retransmission, reinjection: all of the kind on this subflow since the point before, this segment included; 0 for ack and window"`
	Weight       int32  `json:"weight" unit:"segments" doc:"how many segments it stands for: with more than twice --samples of a kind in a direction every second, fourth, … is kept"`
}

// Object is a web object: one HTTP request with its response.
type Object struct {
	ConnectionID int32          `json:"connection_id" doc:"the connection"`
	Protocol     string         `json:"protocol" doc:"http/1.1 or h2"`
	StreamID     int32          `json:"stream_id" doc:"of HTTP/2; for HTTP/1.1 the number of the request on its connection"`
	Method       string         `json:"method" doc:"of the request"`
	URL          string         `json:"url" doc:"of the request, absolute where the host is known"`
	Status       int32          `json:"status" doc:"0: no response was seen"`
	Type         string         `json:"type" doc:"Content-Type"`
	RequestNS    int64          `json:"request_ns" unit:"ns" doc:"first byte of the request, since 1970 UTC"`
	ResponseNS   Maybe[int64]   `json:"response_ns" unit:"ns" doc:"first byte of the response"`
	EndNS        Maybe[int64]   `json:"end_ns" unit:"ns" doc:"last byte of the response"`
	DurationMS   Maybe[float64] `json:"duration_ms" unit:"ms" doc:"request_ns to end_ns"`
	RequestBody  int64          `json:"request_body" unit:"bytes" doc:"as transferred"`
	ResponseBody int64          `json:"response_body" unit:"bytes" doc:"as transferred, before decompression"`
	HeaderBytes  int64          `json:"header_bytes" unit:"bytes" doc:"of request and response, as transferred"`
	Complete     bool           `json:"complete" doc:"the response was seen to its end"`
	Subflows     string         `json:"subflows" doc:"bytes of the response's frames on each subflow: 0:1234,1:567"`
	Networks     string         `json:"networks" doc:"bytes on each network: wifi:1234,cellular:567"`
}

// File describes one capture and how much of it was read.
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

// Warnings counts input that could not be used. The JSON omits zeros.
type Warnings struct {
	// Frames that could not be decoded, by reason. Hidden: the capture ends
	// inside the IPv6 extension headers, so the upper-layer protocol is
	// unknown.
	FramesMalformed   int64 `json:"frames_malformed,omitempty" unit:"frames"`
	FramesTruncated   int64 `json:"frames_truncated,omitempty" unit:"frames"`
	FramesHidden      int64 `json:"frames_hidden,omitempty" unit:"frames"`
	FramesFragment    int64 `json:"frames_fragment,omitempty" unit:"frames"`
	FramesUnknownLink int64 `json:"frames_unknown_link,omitempty" unit:"frames"`
	// Frames of a tunnel whose inner packets are not analysed.
	FramesTunnelled int64 `json:"frames_tunnelled,omitempty" unit:"frames" hint:"see --tunnels"`
	// TCP segments whose IP header states more bytes than the frame has.
	SegmentsOverlong int64 `json:"segments_overlong,omitempty" unit:"segments"`
	// Frames whose time stamp contradicts its two neighbours, which agree.
	TimestampsRepaired int64 `json:"timestamps_repaired,omitempty" unit:"frames"`
	// TCP segments that were first fragments; the payload of later fragments is
	// not counted.
	SegmentsFragmented int64 `json:"segments_fragmented,omitempty" unit:"segments"`
	// Packets that the capture holds twice.
	SegmentsDuplicate int64 `json:"segments_duplicate,omitempty" unit:"packets"`
	// Packets of flows that were closed seconds earlier.
	SegmentsLate int64 `json:"segments_late,omitempty" unit:"packets"`
	// Payload of those packets; it is in no table.
	LateBytes int64 `json:"late_bytes,omitempty" unit:"bytes"`
	// TCP segments whose options were cut off by the capture, and segments with
	// a malformed MPTCP option.
	OptionsCut       int64 `json:"options_cut,omitempty" unit:"segments"`
	OptionsMalformed int64 `json:"options_malformed,omitempty" unit:"segments"`
	// MP_JOIN with an HMAC that does not match the keys, and MP_JOIN with the
	// token of no known connection.
	HMACMismatch     int64 `json:"hmac_mismatch,omitempty" unit:"options"`
	JoinUnknownToken int64 `json:"join_unknown_token,omitempty" unit:"SYNs"`
	// MP_CAPABLE with a different key than before.
	KeyChanged int64 `json:"key_changed,omitempty" unit:"options"`
	// Payload of MPTCP subflows without a mapping.
	UnmappedBytes int64 `json:"unmapped_bytes,omitempty" unit:"bytes"`
	// Mappings far outside the data of the connection.
	MappingOutOfRange int64 `json:"mapping_out_of_range,omitempty" unit:"mappings"`
	// Bytes marked as seen to bound the memory of one direction.
	IntervalBytesFilled int64 `json:"interval_bytes_filled,omitempty" unit:"bytes"`
	// Flows and connections that were ended early to bound memory. They have
	// rows; their later packets get separate rows.
	FlowsEvicted int64 `json:"flows_evicted,omitempty" unit:"flows"`
	// Names in payload, keys and logs that could not be used.
	PayloadUndecodable int64 `json:"payload_undecodable,omitempty" unit:"connections"`
}
