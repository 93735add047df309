package linkem

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"

	"mplab/linkem/internal/trace"
)

// Bounds of what can be asked for.
const (
	maxRateKbps      = 500_000 // measured: docs/linkem.md, Limits
	minRateKbps      = 1
	maxDelayMs       = 60_000
	minCodelMs       = 0.001
	maxInterfaceName = 15 // IFNAMSIZ - 1
)

// LinkConfig is one link: the interfaces A and B and what happens between them.
type LinkConfig struct {
	Name string
	A, B string
	Up   Params // A → B
	Down Params // B → A
	// DelayByPrefix adds a one-way delay in milliseconds, both ways, by the longest prefix that holds the address on side B.
	DelayByPrefix map[netip.Prefix]float64
}

// Config is the configuration of `linkem run`.
type Config struct {
	Seed  uint64
	Links []LinkConfig
}

// LoadConfig reads and checks a configuration file. Its errors name the file and the field, and carry ExitConfig.
func LoadConfig(file string) (Config, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Config{}, exitWith(ExitConfig, fmt.Errorf("configuration: %w", err))
	}
	config, err := ParseConfig(raw)
	if err != nil {
		return Config{}, exitWith(ExitConfig, fmt.Errorf("%s: %w", file, err))
	}
	return config, nil
}

// ParseConfig reads and checks a configuration. Its errors are FieldErrors, or tell line and column.
func ParseConfig(raw []byte) (Config, error) {
	if err := checkSyntax(raw); err != nil {
		return Config{}, err
	}
	config := Config{}
	err := readObject("", raw, fields{
		"seed": seedInto(&config.Seed),
		"links": func(path string, raw json.RawMessage) error {
			return readArray(path, raw, func(path string, raw json.RawMessage) error {
				link, err := readLink(path, raw)
				config.Links = append(config.Links, link)
				return err
			})
		},
	}, "links")
	if err != nil {
		return Config{}, err
	}
	return config, checkLinks(config.Links)
}

var linkName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

func readLink(path string, raw json.RawMessage) (LinkConfig, error) {
	link := LinkConfig{DelayByPrefix: map[netip.Prefix]float64{}}
	err := readObject(path, raw, fields{
		"name":            stringInto(&link.Name),
		"a":               stringInto(&link.A),
		"b":               stringInto(&link.B),
		"up":              paramsInto(&link.Up),
		"down":            paramsInto(&link.Down),
		"delay_by_prefix": prefixesInto(link.DelayByPrefix),
	}, "name", "a", "b", "up", "down")
	if err != nil {
		return link, err
	}
	if !linkName.MatchString(link.Name) {
		return link, fieldErrorf(join(path, "name"), "must be 1 to 40 letters, digits, '.', '_' or '-', found %q", link.Name)
	}
	for key, name := range map[string]string{"a": link.A, "b": link.B} {
		if len(name) > maxInterfaceName {
			return link, fieldErrorf(join(path, key), "an interface name has at most %d bytes, found %q", maxInterfaceName, name)
		}
	}
	return link, nil
}

// checkLinks refuses two links of one name and an interface that is used twice.
func checkLinks(links []LinkConfig) error {
	if len(links) == 0 {
		return fieldErrorf("links", "must have at least one link")
	}
	names, interfaces := map[string]int{}, map[string]string{}
	for i, link := range links {
		path := fmt.Sprintf("links[%d]", i)
		if first, taken := names[link.Name]; taken {
			return fieldErrorf(path+".name", "%q is already the name of links[%d]", link.Name, first)
		}
		names[link.Name] = i
		for _, end := range []struct{ key, name string }{{"a", link.A}, {"b", link.B}} {
			field := path + "." + end.key
			if first, taken := interfaces[end.name]; taken {
				return fieldErrorf(field, "interface %q is already %s", end.name, first)
			}
			interfaces[end.name] = field
		}
	}
	return nil
}

// paramsInto reads the conditions of one direction and fills in the default queue.
func paramsInto(target *Params) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var params Params
		err := readObject(path, raw, fields{
			"rate_kbps":    numberInto(&params.RateKbps, 0, maxRateKbps),
			"delay_ms":     numberInto(&params.DelayMs, 0, maxDelayMs),
			"jitter_ms":    numberInto(&params.JitterMs, 0, maxDelayMs),
			"loss_percent": numberInto(&params.LossPercent, 0, 100),
			"queue":        queueInto(&params.Queue),

			"jitter_distribution": oneOfInto(&params.JitterDistribution, distributionNames()),
			"loss_model":          lossModelInto(&params.LossModel),
			"duplicate_percent":   numberInto(&params.DuplicatePercent, 0, 100),
			"reorder_percent":     numberInto(&params.ReorderPercent, 0, 100),
			"trace":               traceInto(&params),
		})
		if err == nil {
			err = checkParams(params, path)
		}
		if err == nil {
			*target = params.withDefaults()
		}
		return err
	}
}

// checkParams refuses conditions that contradict each other.
func checkParams(p Params, path string) error {
	switch {
	case p.RateKbps > 0 && p.RateKbps < minRateKbps:
		return fieldErrorf(join(path, "rate_kbps"), "must be 0 (unlimited) or at least %d, found %s", minRateKbps, plain(p.RateKbps))
	case p.RateKbps > 0 && p.Trace != "":
		return fieldErrorf(path, "give rate_kbps or trace, not both")
	case p.LossModel != nil && p.LossPercent > 0:
		return fieldErrorf(path, "give loss_percent or loss_model, not both")
	case p.ReorderPercent > 0 && p.DelayMs == 0:
		return fieldErrorf(join(path, "reorder_percent"), "needs a delay_ms: such packets overtake others by skipping it")
	}
	return nil
}

// traceInto loads a packet-delivery trace.
func traceInto(target *Params) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		if err := stringInto(&target.Trace)(path, raw); err != nil {
			return err
		}
		if !filepath.IsAbs(target.Trace) {
			return fieldErrorf(path, "must be an absolute path, found %s", excerpt(raw))
		}
		opportunities, err := trace.Load(target.Trace)
		if err != nil {
			return fieldErrorf(path, "%v", err)
		}
		if mean := opportunities.Summarise().MeanKbps; mean > maxRateKbps {
			return fieldErrorf(path, "must offer at most %d kbit/s in the mean, found %s", maxRateKbps, plain(mean))
		}
		target.opportunities = opportunities
		return nil
	}
}

func lossModelInto(target **LossModel) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		model := LossModel{BadLossPercent: 100}
		err := readObject(path, raw, fields{
			"p_percent":         numberInto(&model.PPercent, 0, 100),
			"r_percent":         numberInto(&model.RPercent, 0, 100),
			"good_loss_percent": numberInto(&model.GoodLossPercent, 0, 100),
			"bad_loss_percent":  numberInto(&model.BadLossPercent, 0, 100),
		}, "p_percent", "r_percent")
		if err == nil && model.RPercent == 0 {
			err = fieldErrorf(join(path, "r_percent"), "must be above 0, or the bad state would never end")
		}
		*target = &model
		return err
	}
}

func queueInto(target *Queue) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		queue := Queue{}
		err := readObject(path, raw, fields{
			"bytes":       integerInto(&queue.Bytes, minQueueBytes, maxQueueBytes),
			"packets":     integerInto(&queue.Packets, 1, maxQueuePackets),
			"discipline":  oneOfInto(&queue.Discipline, []string{DropTail, Codel, FqCodel}),
			"target_ms":   numberInto(&queue.TargetMs, minCodelMs, maxDelayMs),
			"interval_ms": numberInto(&queue.IntervalMs, minCodelMs, maxDelayMs),
		})
		if err != nil {
			return err
		}
		*target = queue.withDefaults()
		switch {
		case queue.Bytes > 0 && queue.Packets > 0:
			return fieldErrorf(path, "give bytes or packets, not both")
		case !queue.managed() && queue.TargetMs+queue.IntervalMs > 0:
			return fieldErrorf(path, "target_ms and interval_ms are those of codel and fq_codel; the discipline is %s", DropTail)
		case target.TargetMs > target.IntervalMs:
			return fieldErrorf(path, "target_ms (%s) must not be above interval_ms (%s)", plain(target.TargetMs), plain(target.IntervalMs))
		}
		return nil
	}
}

func prefixesInto(target map[netip.Prefix]float64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		return eachMember(path, raw, func(text string, value json.RawMessage) error {
			field := fmt.Sprintf("%s[%q]", path, text)
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return fieldErrorf(field, "must be an address prefix such as 10.65.0.2/32")
			}
			if prefix != prefix.Masked() {
				return fieldErrorf(field, "has bits after the prefix; did you mean %s?", prefix.Masked())
			}
			if _, twice := target[prefix]; twice {
				return fieldErrorf(field, "given twice")
			}
			var delayMs float64
			if err := numberInto(&delayMs, 0, maxDelayMs)(field, value); err != nil {
				return err
			}
			target[prefix] = delayMs
			return nil
		})
	}
}
