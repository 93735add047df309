package filter

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"mplab/analysis/mptrace/packet"
)

// Terms lists the terms of an expression.
const Terms = `connection N, token HEX, address A, address A/LENGTH, port P, time FROM..TO, joined by "and"`

// Filter is a parsed expression. Each of its terms must hold.
type Filter struct {
	text       string
	connection int32  // −1: no such term
	token      string // 8 hexadecimal digits; "": no such term
	networks   []network
	ports      []uint16
	times      []period
}

// network is a range of addresses of one IP version, as value and mask.
type network struct {
	address, mask packet.Addr
	four          bool
}

// period is a time range, including its ends.
type period struct{ from, to instant }

// instant is a time in ns: since 1970 UTC, or since the first segment.
type instant struct {
	ns       int64
	relative bool
}

// Parse reads an expression. The error quotes the text that is wrong and lists
// the allowed ones.
func Parse(text string) (*Filter, error) {
	f := &Filter{text: strings.Join(strings.Fields(text), " "), connection: -1}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, errors.New("the expression is empty. Allowed: " + Terms)
	}
	for {
		name, value := words[0], ""
		if len(words) > 1 {
			value = words[1]
		}
		read, known := map[string]func(string) error{
			"connection": f.readConnection, "token": f.readToken, "address": f.readAddress, "port": f.readPort, "time": f.readTime,
		}[name]
		if !known {
			return nil, fmt.Errorf("%q is not a term. Allowed: %s", name, Terms)
		}
		if err := read(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch words = words[2:]; {
		case len(words) == 0:
			return f, nil
		case words[0] != "and" || len(words) == 1:
			return nil, fmt.Errorf("%q after %q. Allowed: %s", strings.Join(words, " "), name+" "+value, Terms)
		}
		words = words[1:]
	}
}

// String returns the expression with single spaces.
func (f *Filter) String() string { return f.text }

func (f *Filter) readConnection(value string) error {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a connection_id. Allowed: a number from 0", value)
	}
	if f.connection >= 0 {
		return errors.New("given twice. Allowed: one connection")
	}
	f.connection = int32(n)
	return nil
}

func (f *Filter) readToken(value string) error {
	digits := strings.ToLower(strings.TrimPrefix(value, "0x"))
	if b, err := hex.DecodeString(digits); err != nil || len(b) != 4 {
		return fmt.Errorf("%q is not a token. Allowed: 8 hexadecimal digits, as in the columns token and token_client", value)
	}
	if f.token != "" {
		return errors.New("given twice. Allowed: one token")
	}
	f.token = digits
	return nil
}

func (f *Filter) readAddress(value string) error {
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		var address netip.Addr
		if address, err = netip.ParseAddr(value); err == nil && address.Zone() != "" {
			err = errors.New("zone")
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	if err != nil || prefix.Addr().Is4In6() {
		return fmt.Errorf("%q is not an address. Allowed: an IPv4 or IPv6 address, or a network such as 10.0.0.0/8", value)
	}
	bits := prefix.Bits()
	if prefix.Addr().Is4() {
		bits += 96
	}
	mask := packet.Addr{Hi: ones(min(bits, 64)), Lo: ones(max(bits-64, 0))}
	f.networks = append(f.networks, network{and(addressOf(prefix.Addr()), mask), mask, prefix.Addr().Is4()})
	return nil
}

func (f *Filter) readPort(value string) error {
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is not a port. Allowed: a number from 0 to 65535", value)
	}
	f.ports = append(f.ports, uint16(port))
	return nil
}

func (f *Filter) readTime(value string) error {
	const allowed = "Allowed: FROM..TO, each in seconds since the first TCP segment (12.5) or in RFC 3339 (2026-01-31T12:00:00Z); one of them can be empty"
	from, to, found := strings.Cut(value, "..")
	p := period{instant{ns: math.MinInt64}, instant{ns: math.MaxInt64}}
	if !found || from == "" && to == "" || !p.from.read(from) || !p.to.read(to) {
		return fmt.Errorf("%q is not a range. %s", value, allowed)
	}
	if from != "" && to != "" && p.from.relative == p.to.relative && p.from.ns > p.to.ns {
		return fmt.Errorf("%q ends before it starts. %s", value, allowed)
	}
	f.times = append(f.times, p)
	return nil
}

// longest is the highest number of seconds, so that no sum of times overflows.
const longest = 1e9 * time.Second

// read reads an instant; empty text changes nothing. It returns false if the
// text is neither a number of seconds nor RFC 3339.
func (i *instant) read(text string) bool {
	if text == "" {
		return true
	}
	if strings.Trim(text, "0123456789.") == "" && text[0] != '.' && text[len(text)-1] != '.' {
		d, err := time.ParseDuration(text + "s")
		*i = instant{int64(d), true}
		return err == nil && d < longest
	}
	t, err := time.Parse(time.RFC3339, text)
	*i = instant{ns: t.UnixNano()}
	return err == nil && t.Year() >= 1970 && t.Year() < 2262
}
