package tables

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// WriteSummary writes the result for people.
func (r *Result) WriteSummary(w io.Writer) error {
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s: %d packets, %d of TCP", f.Name, f.Packets, f.TCP)
		if names := strings.Join(f.Interfaces, ", "); names != "" {
			fmt.Fprintf(w, ", on %s", names)
		}
		if f.Dropped > 0 {
			fmt.Fprintf(w, ", %d lost by the capture", f.Dropped)
		}
		if f.Partial {
			fmt.Fprintf(w, "; not read to its end: %s", f.Error)
		}
		fmt.Fprintln(w)
	}
	if len(r.Connections) == 0 {
		fmt.Fprintln(w, "no TCP connections")
	} else if err := r.writeConnections(w); err != nil {
		return err
	}
	return r.writeWarnings(w)
}

func (r *Result) writeConnections(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nconnection\tkind\tclient\tserver\tstart s\tduration s\tup bytes\tdown bytes\treinjected\tretransmitted\tRTT ms\tclosed\tinterface")
	first := r.Connections[0].StartNS
	next := 0
	for i := range r.Connections {
		c := &r.Connections[i]
		kind := c.Kind
		if c.Fallback {
			kind += ", fell back"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%.3f\t%.3f\t%d\t%d\t%d\t\t\t%s\t%s\n", c.ConnectionID, kind,
			address(c.Client, c.ClientPort), address(c.Server, c.ServerPort), float64(c.StartNS-first)/1e9,
			c.DurationS, c.BytesUp, c.BytesDown, c.ReinjectedUp+c.ReinjectedDown, c.Closed, c.Interfaces)
		for ; next < len(r.Subflows) && r.Subflows[next].ConnectionID == c.ConnectionID; next++ {
			r.Subflows[next].summary(t, first)
		}
	}
	return t.Flush()
}

func (s *Subflow) summary(w io.Writer, first int64) {
	role := s.Role
	if s.Backup {
		role += ", backup"
	}
	if !s.Established {
		role += ", not established"
	}
	rtt := ""
	if s.RTTHandshakeMS != nil {
		rtt = strconv.FormatFloat(*s.RTTHandshakeMS, 'f', 3, 64)
	}
	fmt.Fprintf(w, "  .%d\t%s\t%s\t%s\t%.3f\t%.3f\t%d\t%d\t\t%d\t%s\t%s\t%s\n", s.SubflowID, role,
		address(s.Client, s.ClientPort), address(s.Server, s.ServerPort), float64(s.StartNS-first)/1e9, s.DurationS,
		s.UniqueUp, s.UniqueDown, s.RetransmittedBytesUp+s.RetransmittedBytesDown, rtt, s.Closed, s.Interface)
}

func address(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (r *Result) writeWarnings(w io.Writer) error {
	b, err := json.Marshal(r.Warnings)
	if err != nil || string(b) == "{}" {
		return err
	}
	text := strings.NewReplacer("{", "", "}", "", `"`, "", ",", ", ", ":", " ", "_", " ").Replace(string(b))
	_, err = fmt.Fprintf(w, "\nnot used or in doubt: %s\n", text)
	return err
}
