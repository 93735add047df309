package ends

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"mplab/analysis/mptrace/tables"
)

// Schema is the version of the rows. It increases when a column changes meaning
// or is removed, not when a column is added.
const Schema = 1

// Names of the Parquet files and of the members of the JSON object.
const (
	TablePathEnds        = "path_ends"
	TableOWD             = "owd"
	TableLosses          = "losses"
	TableReordering      = "reordering"
	TableReinjectionEnds = "reinjection_ends"
)

// Docs maps each table to its documentation.
var Docs = map[string]string{
	TablePathEnds:        "what each direction of a subflow did between the ends",
	TableOWD:             "one-way delays, thinned beyond --samples per direction of a subflow",
	TableLosses:          "one row per range or packet that did not arrive",
	TableReordering:      "how long data of a connection waited at the receiver for data before it",
	TableReinjectionEnds: "one row per range of data that a second subflow carried: which copy came first",
}

// WriteFiles writes the tables as Parquet files into a directory, and the clock
// and the summary as ends.json. Each file appears complete or not at all.
func (r *Result) WriteFiles(dir string) error {
	about, err := json.MarshalIndent(struct {
		Schema  int      `json:"schema"`
		Clock   Clock    `json:"clock"`
		Summary Summary  `json:"summary"`
		Doubts  []string `json:"doubts,omitempty"`
	}{Schema, r.Clock, r.Summary, r.Doubts}, "", " ")
	if err != nil {
		return err
	}
	for _, write := range []func() error{
		func() error { return writeRows(dir, TablePathEnds, r.PathEnds) },
		func() error { return writeRows(dir, TableOWD, r.OWD) },
		func() error { return writeRows(dir, TableLosses, r.Losses) },
		func() error { return writeRows(dir, TableReordering, r.Reordering) },
		func() error { return writeRows(dir, TableReinjectionEnds, r.Reinjections) },
		func() error { return tables.WriteFile(filepath.Join(dir, "ends.json"), append(about, '\n')) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func writeRows[R any](dir, table string, rows []R) error {
	return tables.WriteRows(dir, table, Docs[table], rows)
}

// WriteJSON writes everything as one JSON object, with one line per row.
func (r *Result) WriteJSON(out io.Writer) error {
	w := tables.NewJSONWriter(out, Schema)
	w.Member("clock", r.Clock)
	w.Member("summary", r.Summary)
	if len(r.Doubts) > 0 {
		w.Member("doubts", r.Doubts)
	}
	tables.WriteList(w, TablePathEnds, r.PathEnds)
	tables.WriteList(w, TableOWD, r.OWD)
	tables.WriteList(w, TableLosses, r.Losses)
	tables.WriteList(w, TableReordering, r.Reordering)
	tables.WriteList(w, TableReinjectionEnds, r.Reinjections)
	tables.WriteList(w, "phone", r.Phone)
	tables.WriteList(w, "proxy", r.Proxy)
	return w.Close()
}

// shown is the default number of directions in a summary.
const shown = 40

// WriteSummary writes the clock and one line for each of the directions that
// sent the most, as text. limit is the number of directions; 0: 40, negative:
// all.
func (r *Result) WriteSummary(out io.Writer, limit int) error {
	fmt.Fprintln(out, r.Clock)
	for _, doubt := range r.Doubts {
		fmt.Fprintln(out, "WARNING:", doubt)
	}
	rows := r.most(cmp.Or(limit, shown))
	if n := len(rows); n < len(r.PathEnds) {
		fmt.Fprintf(out, "the %d of %d directions of subflows that sent most, in the order of connections:\n", n, len(r.PathEnds))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "conn\tsub\tpath\tdir\tsent\tlost\t%\tduplicated\treordered\tOWD min\tmedian\tp95\tjitter ms")
	for _, p := range rows {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", p.ConnectionID, p.SubflowID, cmp.Or(p.Interface, "-"), p.Direction,
			p.Sent, p.Lost, short(p.LostPercent), p.Duplicated, p.Reordered, short(p.OWDMinMS), short(p.OWDP50MS), short(p.OWDP95MS), short(p.JitterMS))
	}
	return w.Flush()
}

// most returns the directions that sent the most, in row order.
func (r *Result) most(limit int) []PathEnds {
	if limit < 0 || limit >= len(r.PathEnds) {
		return r.PathEnds
	}
	order := make([]int, len(r.PathEnds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.PathEnds[b].Sent, r.PathEnds[a].Sent) })
	order = order[:limit]
	slices.Sort(order)
	rows := make([]PathEnds, limit)
	for i, at := range order {
		rows[i] = r.PathEnds[at]
	}
	return rows
}

func short(v tables.Maybe[float64]) string {
	if !v.Known {
		return "-"
	}
	return fmt.Sprintf("%.2f", v.Value)
}

// String describes the relation of the clocks in one sentence.
func (c Clock) String() string {
	switch {
	case c.Same:
		return "one clock for both ends"
	case !c.Known:
		return "clocks: packets of only one direction were matched; delays are relative to the shortest"
	}
	drift := fmt.Sprintf("drift %.2f ± %.2f ppm", c.DriftPPM, c.DriftErrorPPM)
	if !c.DriftKnown {
		drift = "drift not known"
	}
	return fmt.Sprintf("the proxy's clock is %.3f ± %.3f ms ahead at %s (path %s; the middle is right when the shortest delays of both directions are equal), %s",
		c.OffsetMS, c.UncertaintyMS, time.Unix(0, c.StartNS).UTC().Format(time.RFC3339), c.Path, drift)
}
