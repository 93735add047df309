package rules

import "strings"

// Rule forbids imports. Paths are prefixes: "mplab/mpflex" includes all packages below it.
type Rule struct {
	From    string   // importing packages
	To      string   // packages that they must not import, directly or indirectly
	Because string   // reason, shown when the rule is broken
	Direct  bool     // forbid only direct imports
	Except  []string // importing packages that are exempt
	Tests   bool     // applies to tests, too
}

// Module is the prefix of this module's packages.
const Module = "mplab/"

// All lists the rules of this module.
var All = []Rule{
	// Programs.
	{From: "mplab/mpflex", To: "mplab/phonelog", Tests: true, Because: "agent and proxy run without a logger"},
	{From: "mplab/mpflex", To: "mplab/analysis", Because: "a program on the phone needs no analysis; formats are compared by the tests of mptrace"},
	{From: "mplab/mpflex", To: "mplab/linkem", Because: "mpflex runs on real networks, too; emulated links are for tests"},
	{From: "mplab/phonelog", To: "mplab/mpflex", Tests: true, Because: "the logger records networks whatever transport is used"},
	{From: "mplab/phonelog", To: "mplab/linkem", Tests: true, Because: "the logger runs on phones, where no link is emulated"},
	{From: "mplab/phonelog", To: "mplab/analysis", Tests: true, Because: "the records are the interface: docs/schema/phone-log.schema.json"},
	{From: "mplab/linkem", To: "mplab/mpflex", Tests: true, Because: "a link does not know what passes over it"},
	{From: "mplab/linkem", To: "mplab/phonelog", Tests: true, Because: "a link does not know what passes over it"},
	{From: "mplab/analysis", To: "mplab/mpflex", Because: "mptrace reads captures of any program; only its tests compare formats with mpflex"},
	{From: "mplab/analysis", To: "mplab/phonelog", Tests: true, Because: "mptrace reads captures, not records of phones"},
	{From: "mplab/control", To: "mplab/", Tests: true, Because: "every program has a control socket, so the package knows none of them"},
	{From: "mplab/internal", To: "mplab/mpflex", Tests: true, Because: "what is shared does not depend on a program"},
	{From: "mplab/internal", To: "mplab/phonelog", Tests: true, Because: "what is shared does not depend on a program"},
	{From: "mplab/internal", To: "mplab/linkem", Tests: true, Because: "what is shared does not depend on a program"},
	{From: "mplab/internal", To: "mplab/analysis", Tests: true, Because: "what is shared does not depend on a program"},
	{From: "mplab/", To: "mplab/bench", Except: []string{"mplab/bench"}, Because: "no program contains its benchmark"},
	{From: "mplab/", To: "mplab/internal/testkit", Because: "help for tests stays out of programs"},

	// Third-party libraries.
	{From: "mplab/mpflex", To: "github.com/mdlayher", Because: "WiFi and generic netlink are read by the logger only; the agent stays small"},
	{From: "mplab/mpflex", To: "github.com/santhosh-tekuri/jsonschema", Because: "records are checked by the collector only; the agent stays small"},
	{From: "mplab/mpflex/internal/transport", To: "github.com/vishvananda/netlink", Because: "changes of interfaces come from internal/ifaces, which works where Android restricts netlink"},
	{From: "mplab/", To: "github.com/apache/arrow-go", Because: "mptrace has a Parquet writer and generated Arrow schemas; arrow-go only tests both"},
	{From: "mplab/mpflex", To: "github.com/hashicorp/yamux", Tests: true, Direct: true, Because: "yamux is a rival in the benchmark"},

	// Subpackages of mpflex, from the lowest.
	{From: "mplab/mpflex/wire", To: "mplab/", Because: "the format of the first messages needs nothing but bytes"},
	{From: "mplab/mpflex/internal/names", To: "mplab/", Because: "a host name is checked without knowing where it came from"},
	{From: "mplab/mpflex/internal/transport", To: "mplab/mpflex/internal/forward", Because: "a session carries bytes whoever sends them"},
	{From: "mplab/mpflex/internal/transport", To: "mplab/mpflex/connlog", Because: "a session reports events; whether they are logged is decided above"},
	{From: "mplab/mpflex/internal/transport", To: "mplab/mpflex/config", Because: "settings are passed in, so that a session is tested without files"},
	{From: "mplab/mpflex/internal/transport", To: "mplab/mpflex/policy", Because: "a session has schemes; rules are a matter of the agent"},
	{From: "mplab/mpflex/internal/transport/uplink", To: "mplab/mpflex/internal/transport/downlink", Because: "the two sides share the wire format and nothing else"},
	{From: "mplab/mpflex/internal/transport/downlink", To: "mplab/mpflex/internal/transport/uplink", Because: "the two sides share the wire format and nothing else"},
	{From: "mplab/mpflex/internal/transport/sched", To: "mplab/", Because: "a scheduler decides by what it is told, so that it is tested with recorded states"},
	{From: "mplab/mpflex/internal/forward", To: "mplab/mpflex/config", Because: "settings are passed in, so that a front end is tested without files"},
	{From: "mplab/mpflex/internal/forward", To: "mplab/mpflex/policy", Because: "rules are applied by the agent; a front end only asks its caller"},
	{From: "mplab/mpflex/internal/forward", To: "mplab/mpflex/status", Because: "status reads the counters of forward, not the other way round"},
	{From: "mplab/mpflex/policy", To: "mplab/mpflex/config", Because: "rule files are read without the agent's configuration, as `mpflex policy check` does"},
	{From: "mplab/mpflex/policy", To: "mplab/mpflex/internal/forward", Because: "a rule decides over a flow, however it came in"},
	{From: "mplab/mpflex/internal/agent", To: "mplab/mpflex/internal/proxy", Because: "agent and proxy run on different machines and share the wire format"},
	{From: "mplab/mpflex/internal/proxy", To: "mplab/mpflex/internal/agent", Because: "agent and proxy run on different machines and share the wire format"},
	{From: "mplab/mpflex/", To: "mplab/mpflex/internal/measure", Except: []string{"mplab/mpflex/cli", "mplab/mpflex/cmd", "mplab/mpflex/internal/measure"}, Because: "what carries traffic does not depend on what tests it"},
	{From: "mplab/mpflex/", To: "mplab/mpflex/cli", Except: []string{"mplab/mpflex/cli", "mplab/mpflex/cmd"}, Because: "the command line is on top"},

	// Phonelog.
	{From: "mplab/phonelog/internal/logger", To: "mplab/phonelog/internal/collector", Because: "logger and collector run on different machines; only tests use both"},
	{From: "mplab/phonelog/internal/collector", To: "mplab/phonelog/internal/logger", Because: "the collector checks records by the schema, whoever wrote them"},

	// Subpackages of linkem.
	{From: "mplab/linkem/model", To: "mplab/linkem/internal/port", Because: "the model is told the time and holds no socket, so that it is tested without either"},
	{From: "mplab/linkem/model", To: "mplab/linkem/internal/system", Because: "the model is told the time and holds no socket, so that it is tested without either"},
	{From: "mplab/linkem/model", To: "mplab/linkem/internal/config", Because: "conditions are passed in; who wrote them does not matter"},
	{From: "mplab/linkem/probe", To: "mplab/linkem/model", Because: "the probe measures real links, too"},
	{From: "mplab/linkem/probe", To: "mplab/linkem/internal/emulator", Because: "the probe measures real links, too"},
	{From: "mplab/linkem/", To: "mplab/linkem/cli", Except: []string{"mplab/linkem/cli", "mplab/linkem/cmd"}, Because: "the command line is on top"},

	// Stages of mptrace, from the first.
	{From: "mplab/analysis/mptrace/capfile", To: "mplab/", Because: "linkem reads captures, too"},
	{From: "mplab/analysis/mptrace/packet", To: "mplab/", Because: "linkem decodes frames, too"},
	{From: "mplab/analysis/mptrace/tables", To: "mplab/analysis/mptrace/packet", Because: "stages fill in the rows; what a row says does not depend on how it was found"},
	{From: "mplab/analysis/mptrace/internal/source", To: "mplab/analysis/mptrace/internal/tcp", Because: "a stage knows those before it only"},
	{From: "mplab/analysis/mptrace/internal/tcp", To: "mplab/analysis/mptrace/internal/source", Because: "packets are passed in, so that flows are tested without files"},
	{From: "mplab/analysis/mptrace/internal/tcp", To: "mplab/analysis/mptrace/internal/mptcp", Because: "TCP is followed without Multipath TCP"},
	{From: "mplab/analysis/mptrace/internal/mptcp", To: "mplab/analysis/mptrace/internal/observe", Because: "observers are passed in, and cost nothing when there are none"},
	{From: "mplab/analysis/mptrace/internal/mptcp", To: "mplab/analysis/mptrace/internal/payload", Because: "the reader of payload is passed in, and costs nothing when there is no payload"},
	{From: "mplab/analysis/mptrace/internal/anonymise", To: "mplab/analysis/mptrace/internal", Because: "each frame is replaced by itself; no connection is followed"},
	{From: "mplab/analysis/mptrace/internal/anonymise", To: "mplab/analysis/mptrace/tables", Because: "captures are written, and no tables"},
	{From: "mplab/analysis/mptrace/internal/parquet", To: "mplab/", Because: "the file format knows nothing of the tables"},
	{From: "mplab/analysis/mptrace/internal/pipeline", To: "mplab/", Because: "stages are passed in"},
}

// under reports whether a package is equal to a prefix or below it. A prefix that ends in "/" has no package itself.
func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

// Binds reports whether the rule applies to the imports of a package.
func (r Rule) Binds(path string) bool {
	if !under(path, r.From) {
		return false
	}
	for _, except := range r.Except {
		if under(path, except) {
			return false
		}
	}
	return true
}

// Forbids reports whether the rule forbids an import of a package to which it applies. Packages below From may import
// each other even if To includes them.
func (r Rule) Forbids(path, imported string) bool {
	return under(imported, r.To) && imported != path && !(under(r.From, r.To) && under(imported, r.From))
}
