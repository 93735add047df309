package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"

	"mplab/internal/strictjson"
	"mplab/linkem/internal/exit"
	"mplab/linkem/internal/trace"
	"mplab/linkem/model"
)

// Limits of the configuration.
const (
	maxRateKbps      = 500_000 // measured: docs/linkem.md, Limits
	minRateKbps      = 1
	maxDelayMs       = 60_000
	minCodelMs       = 0.001
	maxInterfaceName = 15 // IFNAMSIZ - 1
)

// Link is a link between the interfaces A and B, with its conditions.
type Link struct {
	Name string
	A, B string
	Up   model.Params // A → B
	Down model.Params // B → A
	// DelayByPrefix adds a one-way delay in ms, in both directions, by the longest prefix of the address on side B.
	DelayByPrefix map[netip.Prefix]float64
}

// Config is the configuration of `linkem run`.
type Config struct {
	Seed  uint64
	Links []Link
}

// Load reads and checks a configuration file. Its errors contain file and field, and carry exit.Config.
func Load(file string) (Config, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Config{}, exit.With(exit.Config, fmt.Errorf("configuration: %w", err))
	}
	config, err := Parse(raw)
	if err != nil {
		return Config{}, exit.With(exit.Config, fmt.Errorf("%s: %w", file, err))
	}
	return config, nil
}

// Parse reads and checks a configuration. Its errors contain the key, or line and column.
func Parse(raw []byte) (Config, error) {
	if err := strictjson.CheckSyntax(raw); err != nil {
		return Config{}, err
	}
	config := Config{}
	err := strictjson.Object("", raw, strictjson.Fields{
		"seed": strictjson.Seed(&config.Seed),
		"links": func(path string, raw json.RawMessage) error {
			return strictjson.Array(path, raw, func(path string, raw json.RawMessage) error {
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

func readLink(path string, raw json.RawMessage) (Link, error) {
	link := Link{DelayByPrefix: map[netip.Prefix]float64{}}
	err := strictjson.Object(path, raw, strictjson.Fields{
		"name":            strictjson.String(&link.Name),
		"a":               strictjson.String(&link.A),
		"b":               strictjson.String(&link.B),
		"up":              paramsInto(&link.Up),
		"down":            paramsInto(&link.Down),
		"delay_by_prefix": prefixesInto(link.DelayByPrefix),
	}, "name", "a", "b", "up", "down")
	if err != nil {
		return link, err
	}
	if !linkName.MatchString(link.Name) {
		return link, strictjson.Errorf(strictjson.Join(path, "name"), "must be 1 to 40 letters, digits, '.', '_' or '-', found %q", link.Name)
	}
	for key, name := range map[string]string{"a": link.A, "b": link.B} {
		if len(name) > maxInterfaceName {
			return link, strictjson.Errorf(strictjson.Join(path, key), "an interface name has at most %d bytes, found %q", maxInterfaceName, name)
		}
	}
	return link, nil
}

// checkLinks returns an error if two links have the same name or an interface is used twice.
func checkLinks(links []Link) error {
	if len(links) == 0 {
		return strictjson.Errorf("links", "must have at least one link")
	}
	names, interfaces := map[string]int{}, map[string]string{}
	for i, link := range links {
		path := fmt.Sprintf("links[%d]", i)
		if first, taken := names[link.Name]; taken {
			return strictjson.Errorf(path+".name", "%q is already the name of links[%d]", link.Name, first)
		}
		names[link.Name] = i
		for _, end := range []struct{ key, name string }{{"a", link.A}, {"b", link.B}} {
			field := path + "." + end.key
			if first, taken := interfaces[end.name]; taken {
				return strictjson.Errorf(field, "interface %q is already %s", end.name, first)
			}
			interfaces[end.name] = field
		}
	}
	return nil
}

// paramsInto reads the conditions of one direction and sets the default queue.
func paramsInto(target *model.Params) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var params model.Params
		err := strictjson.Object(path, raw, strictjson.Fields{
			"rate_kbps":    strictjson.Number(&params.RateKbps, 0, maxRateKbps),
			"delay_ms":     strictjson.Number(&params.DelayMs, 0, maxDelayMs),
			"jitter_ms":    strictjson.Number(&params.JitterMs, 0, maxDelayMs),
			"loss_percent": strictjson.Number(&params.LossPercent, 0, 100),
			"queue":        queueInto(&params.Queue),

			"jitter_distribution": strictjson.OneOf(&params.JitterDistribution, model.DistributionNames()),
			"loss_model":          lossModelInto(&params.LossModel),
			"duplicate_percent":   strictjson.Number(&params.DuplicatePercent, 0, 100),
			"reorder_percent":     strictjson.Number(&params.ReorderPercent, 0, 100),
			"middlebox":           strictjson.OneOf(&params.Middlebox, model.MiddleboxNames()),
			"trace":               traceInto(&params),
		})
		if err == nil {
			err = checkParams(params, path)
		}
		if err == nil {
			*target = params.WithDefaults()
		}
		return err
	}
}

// checkParams returns an error if conditions contradict each other.
func checkParams(p model.Params, path string) error {
	switch {
	case p.RateKbps > 0 && p.RateKbps < minRateKbps:
		return strictjson.Errorf(strictjson.Join(path, "rate_kbps"), "must be 0 (unlimited) or at least %d, found %s", minRateKbps, strictjson.Plain(p.RateKbps))
	case p.RateKbps > 0 && p.Trace != "":
		return strictjson.Errorf(path, "give rate_kbps or trace, not both")
	case p.LossModel != nil && p.LossPercent > 0:
		return strictjson.Errorf(path, "give loss_percent or loss_model, not both")
	case p.ReorderPercent > 0 && p.DelayMs == 0:
		return strictjson.Errorf(strictjson.Join(path, "reorder_percent"), "needs a delay_ms: such packets overtake others by skipping it")
	}
	return nil
}

// traceInto loads a packet-delivery trace.
func traceInto(target *model.Params) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		if err := strictjson.String(&target.Trace)(path, raw); err != nil {
			return err
		}
		if !filepath.IsAbs(target.Trace) {
			return strictjson.Errorf(path, "must be an absolute path, found %s", strictjson.Excerpt(raw))
		}
		opportunities, err := trace.Load(target.Trace)
		if err != nil {
			return strictjson.Errorf(path, "%v", err)
		}
		if mean := opportunities.Summarise().MeanKbps; mean > maxRateKbps {
			return strictjson.Errorf(path, "must offer at most %d kbit/s in the mean, found %s", maxRateKbps, strictjson.Plain(mean))
		}
		target.Opportunities = opportunities
		return nil
	}
}

func lossModelInto(target **model.LossModel) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		model := model.LossModel{BadLossPercent: 100}
		err := strictjson.Object(path, raw, strictjson.Fields{
			"p_percent":         strictjson.Number(&model.PPercent, 0, 100),
			"r_percent":         strictjson.Number(&model.RPercent, 0, 100),
			"good_loss_percent": strictjson.Number(&model.GoodLossPercent, 0, 100),
			"bad_loss_percent":  strictjson.Number(&model.BadLossPercent, 0, 100),
		}, "p_percent", "r_percent")
		if err == nil && model.RPercent == 0 {
			err = strictjson.Errorf(strictjson.Join(path, "r_percent"), "must be above 0, or the bad state would never end")
		}
		*target = &model
		return err
	}
}

func queueInto(target *model.Queue) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		queue := model.Queue{}
		err := strictjson.Object(path, raw, strictjson.Fields{
			"bytes":       strictjson.Integer(&queue.Bytes, model.MinQueueBytes, model.MaxQueueBytes),
			"packets":     strictjson.Integer(&queue.Packets, 1, model.MaxQueuePackets),
			"discipline":  strictjson.OneOf(&queue.Discipline, []string{model.DropTail, model.Codel, model.FqCodel}),
			"target_ms":   strictjson.Number(&queue.TargetMs, minCodelMs, maxDelayMs),
			"interval_ms": strictjson.Number(&queue.IntervalMs, minCodelMs, maxDelayMs),
		})
		if err != nil {
			return err
		}
		*target = queue.WithDefaults()
		switch {
		case queue.Bytes > 0 && queue.Packets > 0:
			return strictjson.Errorf(path, "give bytes or packets, not both")
		case !queue.Managed() && queue.TargetMs+queue.IntervalMs > 0:
			return strictjson.Errorf(path, "target_ms and interval_ms are those of codel and fq_codel; the discipline is %s", model.DropTail)
		case target.TargetMs > target.IntervalMs:
			return strictjson.Errorf(path, "target_ms (%s) must not be above interval_ms (%s)", strictjson.Plain(target.TargetMs), strictjson.Plain(target.IntervalMs))
		}
		return nil
	}
}

func prefixesInto(target map[netip.Prefix]float64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		return strictjson.Members(path, raw, func(text string, value json.RawMessage) error {
			field := fmt.Sprintf("%s[%q]", path, text)
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return strictjson.Errorf(field, "must be an address prefix such as 10.65.0.2/32")
			}
			if prefix != prefix.Masked() {
				return strictjson.Errorf(field, "has bits after the prefix; did you mean %s?", prefix.Masked())
			}
			if _, twice := target[prefix]; twice {
				return strictjson.Errorf(field, "given twice; remove one")
			}
			var delayMs float64
			if err := strictjson.Number(&delayMs, 0, maxDelayMs)(field, value); err != nil {
				return err
			}
			target[prefix] = delayMs
			return nil
		})
	}
}
