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

// Why a state was written.
const (
	First  = "first"  // it is the first of this run
	Change = "change" // it differs from the one before
	Repeat = "repeat" // a file begins: each can be read without those before it
)

// Head is what all records have. A run and a number name a record of a device.
type Head struct {
	Kind string  `json:"kind"`
	T    float64 `json:"t"`      // unix seconds
	Mono float64 `json:"mono_s"` // seconds since the phone was started, sleep included (CLOCK_BOOTTIME)
	Run  string  `json:"run"`
	N    uint64  `json:"n"` // from 1 on; a gap says that records were lost
	Why  string  `json:"why,omitempty"`
}

// head makes Head reachable in all records.
func (h *Head) head() *Head { return h }

// Record is anything that is written.
type Record interface {
	head() *Head
	// kind is what the record says it is.
	kind() string
}

// Stamp is the moment of a reading, by both clocks.
type Stamp struct {
	Wall time.Time
	Mono time.Duration // since the phone was started
}

// Now reads both clocks.
func Now() Stamp {
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil { // Linux has it since 2.6.39
		return Stamp{Wall: time.Now()}
	}
	return Stamp{Wall: time.Now(), Mono: time.Duration(boot.Nano())}
}

// Offset is what the wall clock is ahead of the other; it changes when the
// clock is set.
func (s Stamp) Offset() time.Duration { return time.Duration(s.Wall.UnixNano()) - s.Mono }

// Encode fills in the head and returns the line, with its end.
func Encode(r Record, at Stamp, run string, n uint64, why string) ([]byte, error) {
	*r.head() = Head{Kind: r.kind(), T: float64(at.Wall.UnixMicro()) / 1e6, Mono: micro(at.Mono), Run: run, N: n, Why: why}
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// Mark fills in the head of a record that was read and is not written.
func Mark(r Record, at Stamp, run string) {
	*r.head() = Head{Kind: r.kind(), T: float64(at.Wall.UnixMicro()) / 1e6, Mono: micro(at.Mono), Run: run}
}

// micro is a time in seconds, to the microsecond.
func micro(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// Start begins a run.
type Start struct {
	Head
	Device   string   `json:"device"`
	Version  string   `json:"version"`
	Boot     string   `json:"boot,omitempty"` // mono_s of two runs compares only within one
	Recorded []string `json:"recorded"`
	Hashed   bool     `json:"hashed"` // SSIDs and BSSIDs are
	Android  string   `json:"android,omitempty"`
	SDK      int      `json:"sdk,omitempty"`
	Model    string   `json:"model,omitempty"`
	Build    string   `json:"build,omitempty"`
}

// Stop ends a run that was not killed.
type Stop struct {
	Head
	Reason string `json:"reason"`
}

// Heartbeat says that the logger lives, and how it is.
type Heartbeat struct {
	Head
	Stored  int64             `json:"stored_bytes"`
	Unsent  int               `json:"unsent_batches"`
	Refused int               `json:"refused_batches"` // by the collector
	Dropped Dropped           `json:"dropped"`
	Lost    uint64            `json:"lost_records"` // that could not be written
	Sources map[string]string `json:"sources"`      // what each kind is read from
}

// Dropped is what was deleted without being uploaded, ever, for the bound of
// the store.
type Dropped struct {
	Batches uint64 `json:"batches"`
	Bytes   uint64 `json:"bytes"`
}

// Clock says that the wall clock was set.
type Clock struct {
	Head
	Step float64 `json:"step_s"` // forward, if positive
}

// Problem is why something is not recorded. It is said once.
type Problem struct {
	Head
	Source string `json:"source"`
	Text   string `json:"problem"`
}

// MyIP is the address that a server sees when it is asked over one interface.
type MyIP struct {
	Head
	Interface string   `json:"interface"`
	Address   string   `json:"address,omitempty"`
	Connect   *float64 `json:"connect_ms,omitempty"` // TCP's handshake
	RTT       *float64 `json:"rtt_ms,omitempty"`     // from the request to the answer, on a connection that stands
	Error     string   `json:"error,omitempty"`
}

func (*Start) kind() string     { return KindStart }
func (*Stop) kind() string      { return KindStop }
func (*Heartbeat) kind() string { return KindHeartbeat }
func (*Clock) kind() string     { return KindClock }
func (*Problem) kind() string   { return KindProblem }
func (*MyIP) kind() string      { return KindMyIP }
