package policy

import "slices"

// conditions lists the keys of a match, in the order in which they are checked: those
// that are quick to check come first.
var conditions = []struct {
	key  string
	read func(*reader, field) condition
}{
	{"protocol", func(r *reader, f field) condition {
		protocol, _ := valueOf(r, f, "tcp or udp", ParseProtocol)
		return protocolIs(protocol)
	}},
	{"port", func(r *reader, f field) condition {
		ports, _ := valuesOf(r, f, "a port (1 to 65535) or a range such as 8000-8999", parsePorts)
		return portIn(ports)
	}},
	{"uid", func(r *reader, f field) condition {
		uids, _ := valuesOf(r, f, "a uid or a range such as 10000-19999", parseUIDs)
		return uidIn(uids)
	}},
	{"battery", func(r *reader, f field) condition {
		level, _ := valueOf(r, f, "a comparison such as '< 20 %'", thresholds(percentages, "20 %"))
		return battery{level}
	}},
	{"wifi_throughput", func(r *reader, f field) condition {
		rate, _ := valueOf(r, f, "a comparison such as '< 2 Mbit/s'", thresholds(rates, "2 Mbit/s"))
		return wifiThroughput{rate}
	}},
	{"plan_left", func(r *reader, f field) condition {
		left, _ := valueOf(r, f, "a comparison such as '< 500 MB' or '< 10 %'", thresholds(slices.Concat(percentages, sizes), "500 MB"))
		return planLeft{left, left.unit == "%"}
	}},
	{"address", func(r *reader, f field) condition {
		networks, _ := valuesOf(r, f, "an address or a network such as 10.65.0.0/16", parseNetwork)
		return addressIn(networks)
	}},
	{"process", func(r *reader, f field) condition {
		processes, _ := valuesOf(r, f, "the name of a process, or a pattern such as \"chrom*\"", parseProcess)
		return processIs(processes)
	}},
	{"package", func(r *reader, f field) condition {
		packages, _ := valuesOf(r, f, "an Android package such as org.mozilla.firefox", parsePackage)
		return packageIs(packages)
	}},
	{"domain", func(r *reader, f field) condition {
		domains, _ := valuesOf(r, f, "a domain such as example.org or \"*.example.org\"", parseDomain)
		return newDomainIn(domains)
	}},
	{"time", func(r *reader, f field) condition {
		times, _ := valuesOf(r, f, "a range of times such as 22:00-06:00", parseTimes)
		return hours(times)
	}},
}

// match parses the conditions of a rule.
func (r *reader) match(f field, rule *Rule, p *Policy) {
	keys := make([]string, len(conditions))
	for i, c := range conditions {
		keys[i] = c.key
	}
	slices.Sort(keys)
	fields, ok := r.mapping(f, keys...)
	if !ok {
		return
	}
	if len(f.node.Content) == 0 {
		r.bad(f.line, f.place, "no conditions: give the action for all other flows under default")
		return
	}
	for _, c := range conditions {
		value, given := fields[c.key]
		if !given {
			continue
		}
		rule.match = append(rule.match, named{c.key, c.read(r, value)})
		if c.key == "plan_left" && p.Plan == nil {
			r.bad(value.line, value.place, "the file has no plan: give its limit under the key plan")
		}
	}
}
