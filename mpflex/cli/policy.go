package cli

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
	"mplab/mpflex/internal/names"
	"mplab/mpflex/policy"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check a rule file, or explain which rule a flow matches",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cmdline.Exit(cmdline.BadInput, errors.New("policy: give check or explain; see mpflex policy --help"))
		},
	}
	cmd.AddCommand(policyCheckCommand(), policyExplainCommand())
	return cmd
}

func policyCheckCommand() *cobra.Command {
	var options policy.Options
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Read a rule file as the agent would, and list its errors or its rules",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPolicy(cmd, args[0], options)
			if err != nil {
				return err
			}
			printPolicy(cmd.OutOrStdout(), p)
			return nil
		},
	}
	interfacesFlag(cmd, &options)
	return cmd
}

func policyExplainCommand() *cobra.Command {
	var options policy.Options
	var asked question
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Report for each rule whether it matches a flow; omitted conditions are unknown, the default time is now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPolicy(cmd, args[0], options)
			if err != nil {
				return err
			}
			flow, conditions, err := asked.read(p.Plan, time.Now())
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			e := p.Explain(&flow, &conditions)
			if asJSON {
				cmdline.PrintJSON(cmd.OutOrStdout(), explanationOf(p, e))
			} else {
				printExplanation(cmd.OutOrStdout(), e)
			}
			return nil
		},
	}
	interfacesFlag(cmd, &options)
	asked.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func interfacesFlag(cmd *cobra.Command, options *policy.Options) {
	cmd.Flags().StringSliceVar(&options.Interfaces, "interfaces", nil, "the `NAMES` of the phone's interfaces; rules may name no others (default: all of a known kind)")
}

// loadPolicy reads a rule file. Problems are printed without a prefix, so that each
// line starts with FILE:LINE.
func loadPolicy(cmd *cobra.Command, file string, options policy.Options) (*policy.Policy, error) {
	p, err := policy.Load(file, options)
	var bad *policy.FileError
	if errors.As(err, &bad) {
		cmd.PrintErrln(bad)
		return nil, cmdline.Exit(cmdline.BadInput, nil)
	}
	if err != nil {
		return nil, cmdline.Exit(cmdline.BadInput, err)
	}
	return p, nil
}

// question is a flow and the phone's state, from flags.
type question struct {
	uid                              int64
	packages                         []string
	process, domain, dst, protocol   string
	port                             uint16
	clock, battery, planLeft, wiFiIs string
}

func (q *question) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&q.uid, "uid", -1, "the application's `UID`")
	f.StringSliceVar(&q.packages, "package", nil, "its Android `PACKAGE`; several if they share the uid")
	f.StringVar(&q.process, "process", "", "the `NAME` of its process, as in /proc/PID/comm")
	f.StringVar(&q.domain, "domain", "", "the `NAME` that it connects to")
	f.StringVar(&q.dst, "dst", "", "the `ADDRESS[:PORT]` that it connects to")
	f.Uint16Var(&q.port, "port", 0, "the `PORT` that it connects to")
	f.StringVar(&q.protocol, "protocol", "", "the `PROTOCOL`: tcp or udp")
	f.StringVar(&q.clock, "time", "", "the `TIME`: 22:30 today, or 2026-11-15T22:30:00+01:00")
	f.StringVar(&q.battery, "battery", "", "the battery's `LEVEL`: 85%")
	f.StringVar(&q.planLeft, "plan-left", "", "what is `LEFT` of the data plan: 300MB or 12%")
	f.StringVar(&q.wiFiIs, "wifi-throughput", "", "the measured `RATE` of WiFi: 2Mbit/s")
}

// read returns the flow and the conditions of the flags. plan is that of the file.
func (q *question) read(plan *policy.Plan, now time.Time) (f policy.Flow, c policy.Conditions, err error) {
	f = policy.Flow{UID: q.uid, Packages: q.packages, Process: q.process}
	if q.domain != "" {
		var ok bool
		if f.Domain, ok = names.Normalize(q.domain); !ok {
			return f, c, fmt.Errorf("--domain: %q is not a host name", q.domain)
		}
	}
	if q.protocol != "" {
		if f.Protocol, err = policy.ParseProtocol(q.protocol); err != nil {
			return f, c, fmt.Errorf("--protocol: %w", err)
		}
	}
	if f.Dst, err = q.destination(); err != nil {
		return f, c, err
	}
	c, err = q.conditions(plan, now)
	return f, c, err
}

func (q *question) destination() (netip.AddrPort, error) {
	if q.dst == "" {
		return netip.AddrPortFrom(netip.Addr{}, q.port), nil
	}
	if addr, err := netip.ParseAddr(q.dst); err == nil {
		return netip.AddrPortFrom(addr, q.port), nil
	}
	dst, err := netip.ParseAddrPort(q.dst)
	if err != nil {
		return dst, fmt.Errorf("--dst: %q is not ADDRESS or ADDRESS:PORT with a numeric address", q.dst)
	}
	if q.port != 0 && q.port != dst.Port() {
		return dst, fmt.Errorf("--port: %d, but --dst has the port %d", q.port, dst.Port())
	}
	return dst, nil
}

func (q *question) conditions(plan *policy.Plan, now time.Time) (c policy.Conditions, err error) {
	if c.Time, err = parseTime(q.clock, now); err != nil {
		return c, fmt.Errorf("--time: %w", err)
	}
	if c.Battery, err = reading(q.battery, policy.ParsePercentage); err != nil {
		return c, fmt.Errorf("--battery: %w", err)
	}
	if c.WiFiThroughput, err = reading(q.wiFiIs, policy.ParseRate); err != nil {
		return c, fmt.Errorf("--wifi-throughput: %w", err)
	}
	if plan != nil {
		c.PlanLimit = policy.Known(plan.Limit)
	}
	share, err := reading(q.planLeft, policy.ParsePercentage)
	switch {
	case err != nil: // not a percentage: an amount
		if c.PlanLeft, err = reading(q.planLeft, policy.ParseSize); err != nil {
			return c, fmt.Errorf("--plan-left: %w, or 10 %%", err)
		}
	case share.Known && plan == nil:
		return c, fmt.Errorf("--plan-left: %s: the file has no plan; give an amount such as 300MB", q.planLeft)
	case share.Known:
		c.PlanLeft = policy.Known(plan.Limit * share.Value / 100)
	}
	return c, nil
}

// reading parses a quantity. An empty text is unknown.
func reading(text string, parse func(string) (float64, error)) (policy.Reading, error) {
	if text == "" {
		return policy.Reading{}, nil
	}
	value, err := parse(text)
	return policy.Reading{Value: value, Known: err == nil}, err
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 22:30 or 2026-11-15T22:30:00+01:00", text)
	}
	year, month, day := now.Date()
	return time.Date(year, month, day, t.Hour(), t.Minute(), 0, 0, now.Location()), nil
}

func printPolicy(w io.Writer, p *policy.Policy) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, rule := range p.Rules() {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", rule.Index+1, rule.Name, rule.Match(), rule.What())
	}
	fmt.Fprintf(table, "\tdefault\t\t%s\n", p.Default().What())
	_ = table.Flush() // an error cannot be reported
}

func printExplanation(w io.Writer, e policy.Explanation) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range e.Rules {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", v.Rule.Index+1, v.Rule.Name, outcome(v), v.Why)
	}
	_ = table.Flush() // an error cannot be reported
	fmt.Fprintf(w, "%s\n%s\n", e.Decision.Why(), e.Decision.What())
}

// outcome returns the result of a rule.
func outcome(v policy.Verdict) string {
	switch {
	case v.Taken:
		return "taken"
	case v.Matched:
		return "matches, too late"
	}
	return "no"
}

// explanation is the JSON output of explain.
type explanation struct {
	File   string           `json:"file"`
	Rule   string           `json:"rule"`
	Line   int              `json:"line"`
	Action string           `json:"action"` // carry, block, direct
	Label  byte             `json:"label"`
	Scheme *explainedScheme `json:"scheme"` // null unless the action is carry
	Why    string           `json:"why"`
	Rules  []explainedRule  `json:"rules"`
}

type explainedScheme struct {
	Name      string   `json:"name"` // "" if the file gives no name
	Scheduler string   `json:"scheduler"`
	Paths     []string `json:"paths"` // empty: every path that is not a backup
	Backup    []string `json:"backup"`
}

type explainedRule struct {
	Name    string `json:"name"`
	Line    int    `json:"line"`
	Matched bool   `json:"matched"`
	Taken   bool   `json:"taken"`
	Why     string `json:"why"`
}

func explanationOf(p *policy.Policy, e policy.Explanation) explanation {
	d := e.Decision
	out := explanation{
		File: p.File, Rule: d.Name, Line: d.Line, Action: d.Action.String(), Label: d.Label, Why: d.Why(),
		Rules: make([]explainedRule, 0, len(e.Rules)),
	}
	if d.Scheme != nil {
		out.Scheme = &explainedScheme{
			Name: d.SchemeName, Scheduler: d.Scheme.Scheduler,
			Paths: append([]string{}, d.Scheme.Paths...), Backup: append([]string{}, d.Scheme.Backup...),
		}
	}
	for _, v := range e.Rules {
		out.Rules = append(out.Rules, explainedRule{v.Rule.Name, v.Rule.Line, v.Matched, v.Taken, v.Why})
	}
	return out
}
