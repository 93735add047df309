package record

import (
	"encoding/json"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of records.
const (
	KindStart     = "start"
	KindStop      = "stop"
	KindHeartbeat = "heartbeat"
	KindClock     = "clock"
	KindProblem   = "problem"
	KindInterface = "interface"
	KindRoutes    = "routes"
	KindWiFi      = "wifi"
	KindCell      = "cell"
	KindBattery   = "battery"
	KindLocation  = "location"
	KindMyIP      = "myip"
)

// Reasons for writing a state.
const (
	First  = "first"  // the first of this run
	Change = "change" // differs from the previous one
	Repeat = "repeat" // at the start of a file, so that each file can be read without earlier ones
)

// Head is the common part of all records. Run and number identify a record of a
// device.
type Head struct {
	Kind string  `json:"kind"`
	T    float64 `json:"t"`      // unix seconds
	Mono float64 `json:"mono_s"` // seconds since boot, including sleep (CLOCK_BOOTTIME)
	Run  string  `json:"run"`
	N    uint64  `json:"n"` // starts at 1; a gap means lost records
	Why  string  `json:"why,omitempty"`
}

// head gives access to the Head of any record.
func (h *Head) head() *Head { return h }

// Record is any record.
type Record interface {
	head() *Head
	// kind returns the kind of the record.
	kind() string
}

// Stamp is a time on both clocks.
type Stamp struct {
	Wall time.Time
	Mono time.Duration // since boot
}

// Now reads both clocks.
func Now() Stamp {
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil { // available since Linux 2.6.39
		return Stamp{Wall: time.Now()}
	}
	return Stamp{Wall: time.Now(), Mono: time.Duration(boot.Nano())}
}

// Offset returns the wall clock minus the monotonic clock. It changes when the
// wall clock is set.
func (s Stamp) Offset() time.Duration { return time.Duration(s.Wall.UnixNano()) - s.Mono }

// Encode sets the head and returns the line with its line end.
func Encode(r Record, at Stamp, run string, n uint64, why string) ([]byte, error) {
	*r.head() = Head{Kind: r.kind(), T: float64(at.Wall.UnixMicro()) / 1e6, Mono: micro(at.Mono), Run: run, N: n, Why: why}
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// Mark sets the head of a record that is not written.
func Mark(r Record, at Stamp, run string) {
	*r.head() = Head{Kind: r.kind(), T: float64(at.Wall.UnixMicro()) / 1e6, Mono: micro(at.Mono), Run: run}
}

// micro returns a duration in s, rounded to µs.
func micro(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// Start is the first record of a run.
type Start struct {
	Head
	Device   string   `json:"device"`
	Version  string   `json:"version"`
	Boot     string   `json:"boot,omitempty"` // mono_s is comparable only within one boot
	Recorded []string `json:"recorded"`
	Hashed   bool     `json:"hashed"` // SSIDs and BSSIDs are hashed
	Android  string   `json:"android,omitempty"`
	SDK      int      `json:"sdk,omitempty"`
	Model    string   `json:"model,omitempty"`
	Build    string   `json:"build,omitempty"`
}

// Stop is the last record of a run that was not killed.
type Stop struct {
	Head
	Reason string `json:"reason"`
}

// Heartbeat shows that the logger runs, with its state.
type Heartbeat struct {
	Head
	Stored  int64             `json:"stored_bytes"`
	Unsent  int               `json:"unsent_batches"`
	Refused int               `json:"refused_batches"` // by the collector
	Dropped Dropped           `json:"dropped"`
	Lost    uint64            `json:"lost_records"` // could not be written
	Sources map[string]string `json:"sources"`      // origin of each kind
}

// Dropped counts what was ever deleted without upload to stay within the size
// limit of the store.
type Dropped struct {
	Batches uint64 `json:"batches"`
	Bytes   uint64 `json:"bytes"`
}

// Clock reports a step of the wall clock.
type Clock struct {
	Head
	Step float64 `json:"step_s"` // positive: forward
}

// Problem is the reason why something is not recorded. It is written once.
type Problem struct {
	Head
	Source string `json:"source"`
	Text   string `json:"problem"`
}

// MyIP is the phone's address that the collector sees on one interface.
type MyIP struct {
	Head
	Interface string   `json:"interface"`
	Address   string   `json:"address,omitempty"`
	Connect   *float64 `json:"connect_ms,omitempty"` // duration of the TCP handshake
	RTT       *float64 `json:"rtt_ms,omitempty"`     // from request to answer, on an open connection
	Error     string   `json:"error,omitempty"`
}

func (*Start) kind() string     { return KindStart }
func (*Stop) kind() string      { return KindStop }
func (*Heartbeat) kind() string { return KindHeartbeat }
func (*Clock) kind() string     { return KindClock }
func (*Problem) kind() string   { return KindProblem }
func (*MyIP) kind() string      { return KindMyIP }
