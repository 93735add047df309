package policy

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "time/tzdata" // phones store time zones in another format

	"golang.org/x/net/idna"

	"mplab/mpflex/internal/names"
)

// maxCommand is the maximum length of a process name in the kernel (TASK_COMM_LEN - 1).
const maxCommand = 15

const maxUID = math.MaxUint32 - 1 // 2³²-1 is not a uid

func parsePorts(text string) (span, error) {
	s, ok := parseSpan(text)
	if !ok || s.first < 1 || s.last > math.MaxUint16 {
		return span{}, fmt.Errorf("%s is not a port; give 1 to 65535, or a range such as 8000-8999", show(text))
	}
	return s, s.check(text)
}

func parseUIDs(text string) (span, error) {
	s, ok := parseSpan(text)
	if !ok || s.last > maxUID {
		return span{}, fmt.Errorf("%s is not a uid; give 0 to %d, or a range such as 10000-19999", show(text), int64(maxUID))
	}
	return s, s.check(text)
}

func (s span) check(text string) error {
	if s.first > s.last {
		return fmt.Errorf("the range %s ends before it begins", show(text))
	}
	return nil
}

// parseSpan parses "80" or "8000-8999".
func parseSpan(text string) (span, bool) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 32)
	return span{int64(a), int64(b)}, errA == nil && errB == nil
}

func parseNetwork(text string) (network, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return newNetwork(netip.PrefixFrom(addr, addr.BitLen())), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return network{}, fmt.Errorf("%s is not an address or a network; give for example 10.65.0.0/16 or 2001:db8::1", show(text))
	}
	if prefix != prefix.Masked() {
		return network{}, fmt.Errorf("%s has bits set after its length; did you mean %s?", prefix, prefix.Masked())
	}
	if prefix.Addr().Is4In6() {
		return network{}, fmt.Errorf("%s is an IPv4 network in its IPv6 form; write it as IPv4", prefix)
	}
	return newNetwork(prefix), nil
}

// toASCII converts names beyond ASCII to their xn-- form (UTS 46). It allows
// underscores.
var toASCII = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

func parseDomain(text string) (string, error) {
	name, below := strings.CutPrefix(strings.TrimSpace(text), "*.")
	ascii, err := toASCII.ToASCII(name)
	normal, ok := names.Normalize(ascii)
	if err != nil || !ok {
		return "", fmt.Errorf("%s is not a domain; give a name such as example.org, or \"*.example.org\" for all names below it", show(text))
	}
	if below {
		return "*." + normal, nil
	}
	return normal, nil
}

func parseProcess(text string) (glob, error) {
	if g := newGlob(text); g.shortest() <= maxCommand {
		return g, nil
	}
	return glob{}, fmt.Errorf("%s never matches: the kernel keeps the first %d characters of a process's name", show(text), maxCommand)
}

func parsePackage(text string) (glob, error) {
	for _, c := range []byte(text) {
		if !strings.ContainsRune("._*?", rune(c)) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return glob{}, fmt.Errorf("%s is not an Android package; give for example org.mozilla.firefox, or a pattern such as \"org.mozilla.*\"", show(text))
		}
	}
	return newGlob(text), nil
}

// unit is a unit of a quantity. scale is its size in the base unit.
type unit struct {
	name  string
	scale float64
}

var (
	percentages = []unit{{"%", 1}}
	sizes       = []unit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
	rates       = []unit{{"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}}
)

var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(\D.*)?$`)

// parseQuantity parses a number with one of the units, such as "2.5 Mbit/s".
func parseQuantity(text string, units []unit, example string) (value float64, u unit, err error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return 0, unit{}, fmt.Errorf("%s is not a quantity such as %s", show(text), example)
	}
	value, err = strconv.ParseFloat(parts[1], 64)
	if err != nil || len(parts[1]) > 15 {
		return 0, unit{}, fmt.Errorf("%s is too large a number", show(parts[1]))
	}
	if parts[2] == "" {
		return 0, unit{}, fmt.Errorf("%s has no unit; give for example %s", show(text), example)
	}
	for _, u := range units {
		if u.name == parts[2] {
			if u.name == "%" && value > 100 {
				return 0, unit{}, fmt.Errorf("%s is not within 0 %% and 100 %%", show(text))
			}
			return value * u.scale, u, nil
		}
	}
	return 0, unit{}, errors.New(show(text) + ": " + unknownUnit(parts[2], units))
}

// unknownUnit returns the message for an unknown unit. It lists the units in the order
// of units.
func unknownUnit(found string, units []unit) string {
	list := make([]string, len(units))
	text := "unknown unit " + show(found) + "."
	for i, u := range units {
		if list[i] = u.name; strings.EqualFold(u.name, found) {
			text += " Did you mean '" + u.name + "'?"
		}
	}
	return text + " Allowed: " + strings.Join(list, ", ")
}

// ParseSize parses an amount of data, such as "500 MB", and returns bytes.
func ParseSize(text string) (float64, error) {
	size, _, err := parseQuantity(text, sizes, "500 MB")
	return size, err
}

// ParseRate parses a rate, such as "2 Mbit/s", and returns bit/s.
func ParseRate(text string) (float64, error) {
	rate, _, err := parseQuantity(text, rates, "2 Mbit/s")
	return rate, err
}

// ParsePercentage parses a share, such as "20 %", and returns percent.
func ParsePercentage(text string) (float64, error) {
	share, _, err := parseQuantity(text, percentages, "20 %")
	return share, err
}

// thresholds returns a parser for a comparison such as "< 20 %".
func thresholds(units []unit, example string) func(string) (threshold, error) {
	return func(text string) (threshold, error) {
		rest := strings.TrimSpace(text)
		for _, op := range []comparison{atMost, below, atLeast, above} {
			after, found := strings.CutPrefix(rest, comparisons[op])
			if !found {
				continue
			}
			limit, u, err := parseQuantity(strings.TrimSpace(after), units, example)
			if err != nil {
				return threshold{}, err
			}
			t := threshold{op: op, limit: limit, unit: u.name, scale: u.scale}
			if op == below && limit == 0 {
				return threshold{}, fmt.Errorf("%s never holds", show(text))
			}
			return t, nil
		}
		return threshold{}, fmt.Errorf("%s is not a comparison such as '< %s'; it begins with <, <=, > or >= (the last two in quotes)", show(text), example)
	}
}

var dayRange = regexp.MustCompile(`^\s*(\d\d):(\d\d)\s*-\s*(\d\d):(\d\d)(?:\s+(\S+))?\s*$`)

func parseTimes(text string) (dayTime, error) {
	parts := dayRange.FindStringSubmatch(text)
	if parts == nil {
		return dayTime{}, fmt.Errorf("%s is not a range of times such as 22:00-06:00, or 22:00-06:00 Europe/Brussels", show(text))
	}
	from, okFrom := parseClock(parts[1], parts[2])
	until, okUntil := parseClock(parts[3], parts[4])
	switch {
	case !okFrom || !okUntil || from == daySeconds:
		return dayTime{}, fmt.Errorf("%s: times of a day are 00:00 to 23:59, and 24:00 as an end", show(text))
	case from == until:
		return dayTime{}, fmt.Errorf("%s begins and ends at the same time; for the whole day leave it out", show(text))
	}
	zone, err := parseZone(parts[5])
	return dayTime{from, until, zone}, err
}

const daySeconds = 24 * 3600

func parseClock(hour, minute string) (second int, ok bool) {
	h, _ := strconv.Atoi(hour) // two digits
	m, _ := strconv.Atoi(minute)
	second = h*3600 + m*60
	return second, m < 60 && second <= daySeconds
}

// parseZone returns the time zone with a name. "" means the phone's time zone, nil.
func parseZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %s; give a name such as Europe/Brussels or UTC, or none for the phone's own", show(name))
	}
	return zone, nil
}

// parsePath checks the name of a path.
func (r *reader) parsePath(text string) (string, error) {
	switch {
	case slices.Contains(kinds, text), slices.Contains(r.devices, text):
		return text, nil
	case r.devices == nil && isInterface(text) && KindOf(text) != Other:
		return text, nil
	}
	allowed := slices.Concat(kinds, r.devices)
	message := unknown("path", text, allowed)
	if r.devices == nil {
		message += ", and names of interfaces such as wlan0 or rmnet0"
	}
	return "", errors.New(message)
}
