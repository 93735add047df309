package proxied

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"mplab/internal/lines"
)

// Log holds the connections from the logs of agent and proxy.
type Log struct{ connections map[ends][]record }

// ends are the two endpoints of a connection, the lower one first, because the
// logs differ in which one opened it.
type ends [2]netip.AddrPort

func endsOf(a, b netip.AddrPort) ends {
	a, b = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), netip.AddrPortFrom(b.Addr().Unmap(), b.Port())
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return ends{a, b}
}

type record struct {
	openedNS, endNS int64
	destination     netip.AddrPort
	application     string
}

// Found is a log entry of a connection.
type Found struct {
	Destination netip.AddrPort
	Application string // process name; "" if unknown
}

// skewNS is the maximum distance of a connection's start from the interval in
// the log: the log's interval starts at an accept, the captured connection at a
// SYN.
const skewNS = 30e9

// Find returns the logged connection between two endpoints that started at
// startNS (unix, in ns). The endpoints are those of the first subflow of the
// carrying connection, or of the application's connection to the agent. If
// several successive connections have the same endpoints, it returns the one
// with the nearest start.
func (l *Log) Find(a, b netip.AddrPort, startNS int64) (Found, bool) {
	if l == nil {
		return Found{}, false
	}
	best, nearest := -1, int64(math.MaxInt64)
	all := l.connections[endsOf(a, b)]
	for i, r := range all {
		if startNS < r.openedNS-skewNS || startNS > r.endNS+skewNS {
			continue
		}
		if off := max(startNS-r.openedNS, r.openedNS-startNS); off < nearest {
			best, nearest = i, off
		}
	}
	if best < 0 {
		return Found{}, false
	}
	return Found{all[best].destination, all[best].application}, true
}

// Open reads logs. An error contains file and line.
func Open(names ...string) (*Log, error) {
	l := &Log{connections: map[ends][]record{}}
	if err := lines.Read(names, 1<<20, "a line of more than 1 MiB, want a JSON object", l.line); err != nil {
		return nil, err
	}
	return l, nil
}

// line processes one line; it ignores other events than connections.
func (l *Log) line(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var r struct {
		Event     *string  `json:"event"`
		Opened    *float64 `json:"opened"`
		DurationS float64  `json:"duration_s"`
		Src       string   `json:"src"`
		Dst       string   `json:"dst"`
		Local     string   `json:"local"`
		Remote    string   `json:"remote"`
		Process   string   `json:"process"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return badJSON(text, err)
	}
	if r.Event == nil {
		return errors.New(`no "event", want "connection", "dns" or "refused"`)
	}
	if *r.Event != "connection" {
		return nil
	}
	if r.Opened == nil || !(*r.Opened >= 0 && *r.Opened < 1<<32) {
		return fmt.Errorf(`"opened" %s, want unix seconds`, shownNumber(r.Opened))
	}
	if !(r.DurationS >= 0 && r.DurationS < 1<<32) {
		return fmt.Errorf(`"duration_s" %g, want seconds`, r.DurationS)
	}
	var points [4]netip.AddrPort
	for i, one := range [4]struct{ name, text string }{{"src", r.Src}, {"dst", r.Dst}, {"local", r.Local}, {"remote", r.Remote}} {
		if one.text == "" { // never opened, or unknown
			continue
		}
		var err error
		if points[i], err = netip.ParseAddrPort(one.text); err != nil {
			return fmt.Errorf(`%q %q, want address:port or ""`, one.name, one.text)
		}
	}
	l.add(points, record{
		openedNS: int64(*r.Opened * 1e9), endNS: int64((*r.Opened + r.DurationS) * 1e9),
		destination: netip.AddrPortFrom(points[1].Addr().Unmap(), points[1].Port()), application: r.Process,
	})
	return nil
}

func (l *Log) add(points [4]netip.AddrPort, r record) {
	for _, pair := range [2]ends{endsOf(points[0], points[1]), endsOf(points[2], points[3])} {
		if pair[0].IsValid() && pair[1].IsValid() {
			l.connections[pair] = append(l.connections[pair], r)
			slices.SortStableFunc(l.connections[pair], func(a, b record) int { return cmp.Compare(a.openedNS, b.openedNS) })
		}
	}
}

func badJSON(text []byte, err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		want := map[string]string{"float64": "a number", "string": "a text"}[kind.Type.String()]
		return fmt.Errorf("%q with a JSON %s, want %s", kind.Field, kind.Value, want)
	}
	if len(text) > 40 {
		text = append(slices.Clone(text[:40]), "…"...)
	}
	return fmt.Errorf("%q, want a JSON object", text)
}

func shownNumber(n *float64) string {
	if n == nil {
		return "missing"
	}
	return fmt.Sprint(*n)
}
