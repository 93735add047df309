package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/workload"
)

// overhead compares link bytes with application bytes, for long files on the links of the paper.
func (p *page) overhead() {
	titled := false
	for _, r := range p.table.rows {
		w := p.table.workloads[r.workload]
		if w.Kind != workload.File || w.Size < bulkFrom || w.Profile.Name != links.Paper {
			continue
		}
		base := Summary{}
		if tcp := p.table.series[row{r.workload, r.label, method.Congestions[0]}][method.TCPWiFi]; tcp != nil {
			base = Summarize(tcp.along(w))
		}
		for _, kind := range method.Kinds {
			s := p.table.series[r][kind.Name]
			if s == nil || len(s.down) == 0 {
				continue
			}
			if !titled {
				titled = true
				p.line("\n### Bytes on the links\n\nIP bytes that both links delivered, over the bytes of the application; medians. Asked of MPFlex: at most %.0f %% more than plain TCP.", 100*mostHeaders)
				p.header("method", "with the data", "against it", "beyond TCP over WiFi", "n", "met")
			}
			along := Summarize(s.along(w))
			beyond, met := "–", ""
			if base.There() {
				more := along.Median/base.Median - 1
				beyond = percent(more)
				if kind.Name == method.MPFlex {
					met = verdictOf(more < mostHeaders)
				}
			}
			p.cells(fmt.Sprintf("%s, %s, %s", r.workload, kind.Name, r.congestion), percent(along.Median-1), percent(Summarize(s.against(w)).Median), beyond, fmt.Sprint(along.N), met)
		}
	}
}

// along returns the byte ratios in the direction of the data; against returns those of the other direction.
func (s *series) along(w workload.Workload) []float64 {
	if w.Up {
		return s.up
	}
	return s.down
}

func (s *series) against(w workload.Workload) []float64 {
	if w.Up {
		return s.down
	}
	return s.up
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

func verdictOf(met bool) string {
	if met {
		return "yes"
	}
	return "**falls short**"
}

// rates reports the transfer rates that the CPU permits, and their CPU cost.
func (p *page) rates() {
	titled := false
	for _, r := range p.table.rows {
		if r.label != workload.LabelRate {
			continue
		}
		for _, kind := range method.Kinds {
			s := p.table.series[r][kind.Name]
			if s == nil || len(s.rates) == 0 {
				continue
			}
			if !titled {
				titled = true
				p.line("\n### Where the processor is the limit\n\nOne file over bare virtual Ethernet; medians. CPU seconds per GB: of the benchmark's processes, and of the whole machine with all else that ran. Asked of MPFlex: at least the rate of yamux over TCP, like for like: with TLS that of `%s`, without it that of `%s`. How its rate with TLS compares with yamux's without is beside it.", method.YamuxTLS, method.YamuxTCP)
				p.header("method", "Gbit/s [quartiles]", "to yamux, TLS", "to yamux, plain", "CPU s/GB", "machine s/GB", "n", "met")
			}
			rate, met := Summarize(s.rates), ""
			private := rate.Median / p.bestRate(r.workload, method.YamuxTLS)
			plain := rate.Median / p.bestRate(r.workload, method.YamuxTCP)
			if asked := map[string]float64{method.MPFlex: private, method.MPFlexPlain: plain}[kind.Name]; asked > 0 {
				met = verdictOf(asked >= leastRate)
			}
			p.cells(fmt.Sprintf("%s, %s, %s", r.workload, kind.Name, r.congestion), fmt.Sprintf("%.2f [%.2f–%.2f]", rate.Median, rate.Q1, rate.Q3),
				number(private), number(plain), fmt.Sprintf("%.2f", Summarize(s.cpu).Median), fmt.Sprintf("%.2f", Summarize(s.machine).Median), fmt.Sprint(rate.N), met)
		}
	}
}

// bestRate returns the highest median rate of a method over all congestion controls, or NaN.
func (p *page) bestRate(work, name string) float64 {
	best := math.NaN()
	for _, congestion := range method.Congestions {
		if s := p.table.series[row{work, workload.LabelRate, congestion}][name]; s != nil && len(s.rates) > 0 {
			if rate := Summarize(s.rates).Median; math.IsNaN(best) || rate > best {
				best = rate
			}
		}
	}
	return best
}

// ports matches the port numbers, which differ between errors of the same kind.
var ports = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+):\d+`)

// doubts lists excluded samples, notes and errors, so that none of them is overlooked.
func (p *page) doubts() {
	counts := map[string]int{}
	for _, m := range p.results.Measurements {
		who := m.Method + "/" + m.Congestion + ", " + m.Workload
		for _, fault := range m.Faults {
			counts[who+": not counted, "+fault]++
		}
		for _, note := range m.Notes {
			counts[who+": "+note]++
		}
		if m.Error != "" {
			counts[who+" "+m.Label+": failed, "+ports.ReplaceAllString(m.Error, "$1")]++
		}
	}
	for _, r := range p.results.Restarts {
		text := r.Method + "/" + r.Congestion + ": set up anew between measurements, " + r.Reason
		if r.Error != "" {
			text += "; that failed, " + r.Error
		}
		counts[text]++
	}
	if len(counts) == 0 {
		return
	}
	p.line("\n### Worth knowing\n")
	texts := make([]string, 0, len(counts))
	for text := range counts {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	for _, text := range texts {
		p.line("- %s (%d×)", text, counts[text])
	}
}
