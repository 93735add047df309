package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"mplab/mpflex/internal/transport/session"
)

// Write writes the report as text. If there is an earlier report of the same program,
// it adds the rates between the two.
func (r *Report) Write(w io.Writer, earlier *Report) error {
	var b strings.Builder
	b.WriteString(r.Role)
	if r.Transport != "" {
		b.WriteString(", transport " + r.Transport)
	}
	fmt.Fprintf(&b, ", process %d, up %s\n", r.PID, span(r.UptimeS))
	c := r.Connections
	fmt.Fprintf(&b, "connections: %d open, %d ended; %s up, %s down\n", c.Open, c.Ended, size(c.BytesUp), size(c.BytesDown))
	for i := range r.Sessions {
		r.Sessions[i].write(&b, earlier.session(r.Sessions[i].ID), r.since(earlier))
	}
	if len(r.OwnConnections) > 0 {
		b.WriteString("\n")
		writeConnections(&b, r.OwnConnections)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// since returns the time between two reports in seconds; 0: there is no earlier one.
func (r *Report) since(earlier *Report) float64 {
	if earlier == nil {
		return 0
	}
	return r.T - earlier.T
}

// session returns the session with this number, or nil.
func (r *Report) session(id string) *Session {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Sessions, func(s Session) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &r.Sessions[i]
}

func (s *Session) write(b *strings.Builder, earlier *Session, interval float64) {
	fmt.Fprintf(b, "\nsession %s", s.ID)
	if s.Client != "" {
		fmt.Fprintf(b, " of client %s", s.Client)
	}
	fmt.Fprintf(b, ", %s old; streams: %d open, %d ended; %s wait to be sent, %s for readers\n",
		span(s.AgeS), s.Streams, s.Ended, size(int64(s.Unsent)), size(int64(s.Received)))
	s.writePaths(b, earlier, interval)
	c := s.Counters
	fmt.Fprintf(b, "copies of what was late: %s of tails, %s of stalled paths, %s for full buffers, %s by a redundant scheduler\n",
		size(c.CopiedTail), size(c.CopiedStall), size(c.CopiedBuffer), size(c.CopiedRedundant))
	fmt.Fprintf(b, "sent again after a path had ended: %s; received more than once: %s\n", size(c.SentAgain), size(c.Duplicates))
	if c.DatagramsOut+c.DatagramsIn > 0 {
		fmt.Fprintf(b, "datagrams: %d out, %d in\n", c.DatagramsOut, c.DatagramsIn)
	}
	if len(s.Each) > 0 {
		b.WriteString("\n")
		s.writeStreams(b)
	}
}

// pathLine is a path, or an interface without one.
type pathLine struct {
	session.PathStatus
	state, note string
	idle        bool // no connection
}

// lines returns the current, former and missing paths, by path number.
func (s *Session) lines() []pathLine {
	var lines []pathLine
	for _, p := range s.Paths {
		l := pathLine{PathStatus: p, state: "up"}
		if p.Stalled {
			l.state = "stalled"
		}
		lines = append(lines, l)
	}
	for _, p := range s.Gone {
		lines = append(lines, pathLine{PathStatus: p, state: "down", idle: true})
	}
	for _, m := range s.Missing {
		i := slices.IndexFunc(lines, func(l pathLine) bool { return l.ID == m.Path })
		if i < 0 {
			i = len(lines)
			lines = append(lines, pathLine{PathStatus: session.PathStatus{ID: m.Path, Name: m.Interface}, state: "down", idle: true})
		}
		lines[i].note = m.Error
	}
	slices.SortStableFunc(lines, func(a, b pathLine) int { return cmp.Compare(a.ID, b.ID) })
	return lines
}

func (s *Session) writePaths(b *strings.Builder, earlier *Session, interval float64) {
	t := table{head: []string{"PATH", "INTERFACE", "STATE", "RTT", "MIN RTT", "RATE", "WINDOW", "QUEUED", "OUT", "IN", "COPIES OUT", "COPIES IN", "SET UP"}}
	if interval > 0 {
		t.head = append(t.head, "OUT NOW", "IN NOW")
	}
	t.head = append(t.head, "")
	t.left = []int{1, 2, len(t.head) - 1}
	for _, l := range s.lines() {
		row := []string{strconv.Itoa(int(l.ID)), cmp.Or(l.Name, "(routes)"), l.state, "", "", "", "", ""}
		if !l.idle {
			row = append(row[:3], ms(l.RTTMS), ms(l.MinRTTMS), bits(l.RateBPS), size(int64(l.WindowBytes)), size(int64(l.QueuedBytes)))
		}
		row = append(row, size(l.BytesOut), size(l.BytesIn), size(l.CopiesOut), size(l.CopiesIn), fmt.Sprintf("%d×", l.Incarnation))
		if interval > 0 {
			row = append(row, earlier.flows(l.PathStatus, interval)...)
		}
		t.add(append(row, l.note))
	}
	t.write(b)
}

// flows returns the rates out and in of a path since an earlier report. They are empty
// if s is nil.
func (s *Session) flows(now session.PathStatus, interval float64) []string {
	if s == nil {
		return []string{"", ""}
	}
	var before session.PathStatus // zero if the path did not exist
	for _, p := range slices.Concat(s.Paths, s.Gone) {
		if p.ID == now.ID {
			before = p
		}
	}
	return []string{bits(8 * float64(now.BytesOut-before.BytesOut) / interval), bits(8 * float64(now.BytesIn-before.BytesIn) / interval)}
}

func (s *Session) writeStreams(b *strings.Builder) {
	t := table{head: []string{"STREAM", "FROM", "TO", "AGE", "IDLE", "OUT", "IN", "UNSENT", "WAITING", "BY PATH"}, left: []int{1, 2, 9}}
	for _, st := range s.Each {
		var paths []string
		for _, c := range st.Paths {
			text := fmt.Sprintf("%s: %s out, %s in", cmp.Or(c.Name, strconv.Itoa(int(c.ID))), size(c.Out), size(c.In))
			if c.Copies > 0 {
				text += fmt.Sprintf(", %s copies", size(c.Copies))
			}
			paths = append(paths, text)
		}
		t.add([]string{
			strconv.Itoa(int(st.ID)), endpoint(st.Src.AddrPort), endpoint(st.Dst.AddrPort), span(st.AgeS), span(st.IdleS),
			size(st.BytesOut), size(st.BytesIn), size(st.Unsent), size(st.Waiting), strings.Join(paths, "; "),
		})
	}
	t.write(b)
}

func writeConnections(b *strings.Builder, list []Connection) {
	t := table{head: []string{"CONNECTION", "TRANSPORT", "FROM", "TO", "AGE", "UP", "DOWN"}, left: []int{1, 2, 3}}
	for _, c := range list {
		t.add([]string{
			strconv.FormatUint(c.ID, 10), c.Transport, endpoint(c.Src.AddrPort), endpoint(c.Dst.AddrPort), span(c.AgeS),
			size(c.BytesUp), size(c.BytesDown),
		})
	}
	t.write(b)
}

// span formats a time with at most two units.
func span(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// size formats a number of bytes with decimal prefixes.
func size(bytes int64) string { return scaled(float64(bytes), "B") }

// bits formats a rate in bit/s.
func bits(rate float64) string { return scaled(rate, "bit/s") }

func scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T"}
	i := 0
	for ; i < len(prefixes)-1 && v >= 999.5; i++ {
		v /= 1000
	}
	decimals := 0
	if i > 0 && v < 99.95 {
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + prefixes[i] + unit
}

// ms formats a time in milliseconds.
func ms(v float64) string {
	decimals := 0
	if v < 10 {
		decimals = 2
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " ms"
}

func endpoint(a interface {
	IsValid() bool
	String() string
}) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
