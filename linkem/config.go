package linkem

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"regexp"
)

// Bounds of what can be asked for.
const (
	DefaultQueueBytes = 150_000 // of a rate-limited direction whose queue is not given

	maxRateKbps      = 10_000_000 // 10 Gbit/s
	minRateKbps      = 1
	maxDelayMs       = 60_000
	minQueueBytes    = 1_500 // one full packet, or nothing would ever pass
	maxQueueBytes    = maxHeldBytes
	maxQueuePackets  = 1_000_000
	maxInterfaceName = 15 // IFNAMSIZ - 1
)

// Queue is the size of a drop-tail queue, in IP bytes or in packets; both zero: no limit.
type Queue struct {
	Bytes   int `json:"bytes,omitempty"`
	Packets int `json:"packets,omitempty"`
}

// Params are the conditions in one direction of a link. The zero value lets everything pass at once.
type Params struct {
	RateKbps    float64 `json:"rate_kbps"`    // of IP bytes; 0: unlimited
	DelayMs     float64 `json:"delay_ms"`     // one way
	JitterMs    float64 `json:"jitter_ms"`    // uniform in ± this around DelayMs, never below no delay, never reordering
	LossPercent float64 `json:"loss_percent"` // of IP packets, independently of each other
	Queue       Queue   `json:"queue"`        // with a rate and no queue given: DefaultQueueBytes
}

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
		return Config{}, &ExitError{ExitConfig, fmt.Errorf("configuration: %w", err)}
	}
	config, err := ParseConfig(raw)
	if err != nil {
		return Config{}, &ExitError{ExitConfig, fmt.Errorf("%s: %w", file, err)}
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
		})
		if err != nil {
			return err
		}
		if params.RateKbps > 0 && params.RateKbps < minRateKbps {
			return fieldErrorf(join(path, "rate_kbps"), "must be 0 (unlimited) or at least %d, found %s", minRateKbps, plain(params.RateKbps))
		}
		*target = params.withDefaults()
		return nil
	}
}

func queueInto(target *Queue) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		err := readObject(path, raw, fields{
			"bytes":   integerInto(&target.Bytes, minQueueBytes, maxQueueBytes),
			"packets": integerInto(&target.Packets, 1, maxQueuePackets),
		})
		if err == nil && target.Bytes > 0 && target.Packets > 0 {
			return fieldErrorf(path, "give bytes or packets, not both")
		}
		return err
	}
}

func prefixesInto(target map[netip.Prefix]float64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil || entries == nil {
			return fieldErrorf(path, "must be an object {\"prefix\": milliseconds, …}, found %s", excerpt(raw))
		}
		for _, text := range sortedKeys(entries) {
			field := fmt.Sprintf("%s[%q]", path, text)
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return fieldErrorf(field, "must be an address prefix such as 10.65.0.2/32")
			}
			if prefix != prefix.Masked() {
				return fieldErrorf(field, "has bits after the prefix; did you mean %s?", prefix.Masked())
			}
			var delayMs float64
			if err := numberInto(&delayMs, 0, maxDelayMs)(field, entries[text]); err != nil {
				return err
			}
			target[prefix] = delayMs
		}
		return nil
	}
}

// withDefaults fills in the queue of a rate-limited direction that has none.
func (p Params) withDefaults() Params {
	if p.RateKbps > 0 && p.Queue == (Queue{}) {
		p.Queue.Bytes = DefaultQueueBytes
	}
	return p
}
