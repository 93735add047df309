package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/workload"
)

// Markdown returns the report of a run.
func Markdown(results *record.Results) string {
	p := &page{results: results, table: newTable(results)}
	p.head()
	p.targets()
	for _, s := range sections {
		p.section(s)
	}
	p.overhead()
	p.rates()
	p.doubts()
	return p.String()
}

// page is a report that is being written.
type page struct {
	strings.Builder
	results *record.Results
	table   *table
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// cells writes one row of a Markdown table.
func (p *page) cells(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

// header writes the header of a table with text in the first column and numbers in the others.
func (p *page) header(cells ...string) {
	p.line("")
	p.cells(cells...)
	p.line("| --- |%s", strings.Repeat(" ---: |", len(cells)-1))
}

// head describes the run, the machine and the links.
func (p *page) head() {
	run := p.results.Run
	p.line("%s; Linux %s, %d processors, %s; seed %d, %d runs.", time.Unix(int64(run.Started), 0).UTC().Format(time.DateOnly), run.Kernel, run.CPUs, run.Go, run.Seed, run.Runs)
	var others []float64
	for _, m := range p.results.Measurements {
		others = append(others, m.Host.Others)
	}
	load := Summarize(others)
	p.line("Share of the processors that something else than the benchmark and the kernel's work for it used: median %.0f %%, at most %.0f %%.", 100*load.Median, 100*load.Max)
	for _, a := range p.results.Absent {
		what := "is not there"
		if a.Failed {
			what = "did not start"
		}
		p.line("`%s` with %s %s on links %s: %s.", a.Method, a.Congestion, what, a.Profile, a.Reason)
	}
	if len(p.results.Links) == 0 {
		return
	}
	p.header("links, as measured before use", "RTT ms", "kbit/s down", "kbit/s up", "loss %")
	for _, l := range p.results.Links {
		for _, c := range l.Checked {
			p.cells(l.Profile+" "+c.Link, fmt.Sprintf("%.1f", c.RTT.Median), optional(c.DownKbps), optional(c.UpKbps), fmt.Sprintf("%.1f", c.LossPercent))
		}
	}
}

func optional(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f", *v)
}

// targets reports which targets are met.
func (p *page) targets() {
	p.line("\n### Targets")
	any := false
	for _, congestion := range slices.Backward(method.Congestions) {
		verdicts := slices.DeleteFunc(p.table.judge(congestion), func(v verdict) bool { return !v.judged })
		if len(verdicts) == 0 {
			continue
		}
		any = true
		p.line("\n%s: time of MPFlex over that of the others, with the target in brackets, and the ratio of the physical limit where that is beyond it. Best yamux: the faster of cubic and bbr.", congestion)
		p.header("workload", "kernel MPTCP", "physical limit", "best yamux", "yamux, "+congestion, "met")
		for _, v := range verdicts {
			met := "yes"
			if !v.met {
				met = "**falls short**"
			}
			p.cells(name(v.row), asked(v.got.mptcp, v.target.mptcp, v.floor.mptcp), asked(v.got.limit, v.target.limit, v.floor.limit),
				asked(v.got.yamux, v.target.yamux, v.floor.yamux), number(v.same), met)
		}
	}
	if !any {
		p.line("\nNot judged: there is no measurement of `%s`.", method.MPFlex)
	}
}

// name returns a workload, with its label if it has several.
func name(r row) string {
	switch r.label {
	case workload.LabelFile, workload.LabelBundle, workload.LabelRate:
		return r.workload
	}
	return r.workload + " " + r.label
}

// asked formats a ratio with its target, and with the ratio of the physical limit if that exceeds the target.
func asked(got, most, floor float64) string {
	if math.IsNaN(most) {
		return number(got)
	}
	text := fmt.Sprintf("%s (%.2f)", number(got), most)
	if floor > most {
		text = fmt.Sprintf("%s (%.2f; the limit: %.2f)", number(got), most, floor)
	}
	if got > most {
		return "**" + text + "**"
	}
	return text
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// section is a table of times: workloads of some kinds in one direction, on the links of a profile.
type section struct {
	title   string
	kinds   []workload.Kind
	profile string // "": all links except those of the paper
	up      bool
}

var (
	files   = []workload.Kind{workload.File}
	bundles = []workload.Kind{workload.Sequence, workload.Bundle}
	during  = []workload.Kind{workload.During}
	dying   = []workload.Kind{workload.Dying}
)

var sections = []section{
	{"One file, down", files, links.Paper, false},
	{"One file, up", files, links.Paper, true},
	{"Bundles and sequences of files, down", bundles, links.Paper, false},
	{"Bundles and sequences of files, up", bundles, links.Paper, true},
	{"Short files while a long one is under way, down", during, links.Paper, false},
	{"Short files while a long one is under way, up", during, links.Paper, true},
	{"WiFi dies on the way, down", dying, links.Paper, false},
	{"WiFi dies on the way, up", dying, links.Paper, true},
	{"Other links, down", slices.Concat(files, bundles, during, dying), "", false},
	{"Other links, up", slices.Concat(files, bundles, during, dying), "", true},
}

func (s section) holds(w workload.Workload) bool {
	return slices.Contains(s.kinds, w.Kind) && w.Up == s.up && (w.Profile.Name == links.Paper) == (s.profile == links.Paper)
}

// mostColumns is the maximum number of workload columns in a table.
const mostColumns = 6

// section writes the tables of a section, one per congestion control.
func (p *page) section(s section) {
	titled := false
	for _, congestion := range method.Congestions {
		var rows []row
		for _, r := range p.table.rows {
			if r.congestion == congestion && s.holds(p.table.workloads[r.workload]) {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if !titled {
			titled = true
			p.line("\n### %s", s.title)
			p.line("\nms: median [quartiles] ratio to kernel MPTCP / to the physical limit / to the best yamux over MPTCP; (n) where it is not %d.", p.results.Run.Runs)
		}
		for chunk := range slices.Chunk(rows, mostColumns) {
			p.times(congestion, chunk)
		}
	}
}

// times writes one row per method and one column per workload.
func (p *page) times(congestion string, rows []row) {
	head, limits := []string{congestion}, []string{"*physical limit*"}
	for _, r := range rows {
		head = append(head, name(r))
		limit := "–"
		if l := p.table.limit(r); !math.IsNaN(l) {
			limit = fmt.Sprintf("*%.0f*", l)
		}
		limits = append(limits, limit)
	}
	p.header(head...)
	p.cells(limits...)
	for _, kind := range method.Kinds {
		cells, some := []string{kind.Name}, false
		for _, r := range rows {
			cell := p.cell(r, kind.Name)
			some = some || cell != "–"
			cells = append(cells, cell)
		}
		if some {
			p.cells(cells...)
		}
	}
}

func (p *page) cell(r row, methodName string) string {
	s := p.table.times(r, methodName)
	if s.N == 0 {
		return "–"
	}
	if !s.There() {
		return fmt.Sprintf("%d of %d failed", s.Failed, s.N)
	}
	text := fmt.Sprintf("%.0f [%.0f–%s] %s / %s / %s", s.Median, s.Q1, finite(s.Q3),
		number(ratio(s, p.table.times(r, method.MPTCP))), number(toLimit(s, p.table.limit(r))), number(ratio(s, p.table.bestYamux(r))))
	if r.label == workload.LabelShort {
		text += ", max " + finite(s.Max)
	}
	if s.N != p.results.Run.Runs {
		text += fmt.Sprintf(" (%d)", s.N)
	}
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	return text
}

// finite formats a time, which may be infinite.
func finite(ms float64) string {
	if math.IsInf(ms, 1) {
		return "∞"
	}
	return fmt.Sprintf("%.0f", ms)
}
