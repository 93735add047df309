package filter

import (
	"net/netip"
	"strings"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

func parse(t *testing.T, text string) *Filter {
	t.Helper()
	f, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestErrors: an error quotes the wrong text and lists the allowed ones.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "the expression is empty. Allowed: " + Terms,
		" ":                             "the expression is empty. Allowed: " + Terms,
		"stream 3":                      `"stream" is not a term. Allowed: ` + Terms,
		"tcp.port == 80":                `"tcp.port" is not a term. Allowed: ` + Terms,
		"port":                          `port: "" is not a port. Allowed: a number from 0 to 65535`,
		"port 65536":                    `port: "65536" is not a port. Allowed: a number from 0 to 65535`,
		"port -1":                       `port: "-1" is not a port. Allowed: a number from 0 to 65535`,
		"port 80 or port 443":           `"or port 443" after "port 80". Allowed: ` + Terms,
		"port 80 port 443":              `"port 443" after "port 80". Allowed: ` + Terms,
		"port 80 and":                   `"and" after "port 80". Allowed: ` + Terms,
		"port 80 and and":               `"and" is not a term. Allowed: ` + Terms,
		"connection 2147483648":         `connection: "2147483648" is not a connection_id. Allowed: a number from 0`,
		"connection 1 and connection 1": "connection: given twice. Allowed: one connection",
		"token 1234567":                 `token: "1234567" is not a token. Allowed: 8 hexadecimal digits, as in the columns token and token_client`,
		"token 1234567g":                `token: "1234567g" is not a token. Allowed: 8 hexadecimal digits, as in the columns token and token_client`,
		"token 12345678 and token 0x1":  `token: "0x1" is not a token. Allowed: 8 hexadecimal digits, as in the columns token and token_client`,
		"address 10.0.0":                `address: "10.0.0" is not an address. Allowed: an IPv4 or IPv6 address, or a network such as 10.0.0.0/8`,
		"address 10.0.0.0/33":           `address: "10.0.0.0/33" is not an address. Allowed: an IPv4 or IPv6 address, or a network such as 10.0.0.0/8`,
		"address fe80::1%eth0":          `address: "fe80::1%eth0" is not an address. Allowed: an IPv4 or IPv6 address, or a network such as 10.0.0.0/8`,
		"address ::ffff:10.0.0.1":       `address: "::ffff:10.0.0.1" is not an address. Allowed: an IPv4 or IPv6 address, or a network such as 10.0.0.0/8`,
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	for _, value := range []string{"", "..", "5", "1-2", "x..2", "1..x", "-1..2", "1e3..", "1...2", "1.5..1", "9999999999..", "1h..2h", "0x1..", "+1..2",
		"2026-01-31..", "1969-12-31T23:59:59Z..", "2262-01-01T00:00:00Z..", "2026-01-31T12:00:00Z..2026-01-31T11:00:00Z"} {
		if _, err := Parse("time " + value); err == nil || !strings.HasPrefix(err.Error(), `time: "`+value+`" `) || !strings.Contains(err.Error(), "Allowed: FROM..TO") {
			t.Errorf("time %q: %v", value, err)
		}
	}
}

// second is the time stamp of a segment after the first one.
func second(s float64) int64 { return 1_700_000_000e9 + int64(s*1e9) }

func segment(from, to string, timeNS int64) *packet.Packet {
	a, b := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	return &packet.Packet{TimeNS: timeNS, Src: addressOf(a.Addr()), Dst: addressOf(b.Addr()), SrcPort: a.Port(), DstPort: b.Port()}
}

// TestPass passes the same segment in both directions.
func TestPass(t *testing.T) {
	const four, six = "10.1.2.3:40000 192.0.2.1:443", "[fd21::2]:40000 [fd23::2]:80"
	for _, c := range []struct {
		text, ends string
		at         float64
		want       bool
	}{
		{"address 10.1.2.3", four, 0, true},
		{"address 10.1.2.4", four, 0, false},
		{"address 10.0.0.0/8", four, 0, true},
		{"address 10.9.9.9/8", four, 0, true},
		{"address 10.1.2.2/31", four, 0, true},
		{"address 10.1.2.0/31", four, 0, false},
		{"address 0.0.0.0/0", four, 0, true},
		{"address 0.0.0.0/0", six, 0, false},
		{"address ::/0", six, 0, true},
		{"address ::/0", four, 0, false},
		{"address fd21::2", six, 0, true},
		{"address fd21::3", six, 0, false},
		{"address fd21::/16", six, 0, true},
		{"address fd22::/16", six, 0, false},
		{"address fd23::/64", six, 0, true},
		{"address fd23::4/126", six, 0, false},
		{"port 443", four, 0, true},
		{"port 40000", four, 0, true},
		{"port 80", four, 0, false},
		{"port 443 and port 40000", four, 0, true},
		{"port 443 and port 80", four, 0, false},
		{"address 10.1.2.3 and address 192.0.2.1  and\tport 443", four, 0, true},
		{"address 10.1.2.3 and address 192.0.2.2", four, 0, false},
		{"time 1.5..2", four, 1.5, true},
		{"time 1.5..2", four, 2, true},
		{"time 1.5..2", four, 1.499999999, false},
		{"time 1.5..2", four, 2.000000001, false},
		{"time 1.5..", four, 9999, true},
		{"time ..2", four, 0, true},
		{"time ..2", four, 3, false},
		{"time 2023-11-14T22:13:21Z..", four, 1, true},
		{"time 2023-11-14T22:13:21Z..", four, 0.9, false},
		{"time 2023-11-14T23:13:21.5+01:00..2", four, 1.5, true},
		{"time 2023-11-14T23:13:21.5+01:00..2", four, 2.5, false},
		{"time 0..5 and time 4..9", four, 4.5, true},
		{"time 0..5 and time 4..9", four, 3, false},
	} {
		a, b, _ := strings.Cut(c.ends, " ")
		for _, p := range []*packet.Packet{segment(a, b, second(c.at)), segment(b, a, second(c.at))} {
			gate := parse(t, c.text).Gate(nil)
			gate.Pass(segment("203.0.113.1:1", "203.0.113.2:2", second(0)))
			if got := gate.Pass(p); got != c.want {
				t.Errorf("%s at %v s from port %d: %v", c.text, c.at, p.SrcPort, got)
			}
		}
	}
}

func TestConnection(t *testing.T) {
	row := &tables.Connection{ConnectionID: 7, Token: "00c0ffee", TokenClient: "12345678"}
	for text, want := range map[string]bool{
		"connection 7": true, "connection 8": false, "token 00C0FFEE": true, "token 0x12345678": true, "token 12345679": false,
		"connection 7 and token 00c0ffee": true, "connection 8 and token 00c0ffee": false, "port 80": true,
	} {
		if f := parse(t, text); f.Connection(row) != want || f.Named() != (text != "port 80") {
			t.Errorf("%s: %v, named: %v", text, !want, f.Named())
		}
	}
}

// TestFlows: a segment belongs to the flow that has its ends at its time.
func TestFlows(t *testing.T) {
	var flows Flows
	row := func(id int32, start, duration float64) *tables.Subflow {
		return &tables.Subflow{ConnectionID: id, Client: "10.0.0.1", ClientPort: 40000, Server: "10.0.0.2", ServerPort: 80, StartNS: second(start), DurationS: duration}
	}
	if !flows.Add(row(3, 0, 1)) || !flows.Add(row(9, 10, 1)) {
		t.Fatal("not added")
	}
	gate := parse(t, "connection 3").Gate(&flows)
	for _, c := range []struct {
		at     float64
		number int32
		want   bool
	}{{0, 3, true}, {1, 3, true}, {5, 0, false}, {10, 9, true}, {11, 9, true}, {12, 0, false}} {
		p := segment("10.0.0.2:80", "10.0.0.1:40000", second(c.at))
		if got := gate.Pass(p); got != c.want || flows.Number(p) != c.number {
			t.Errorf("at %v s: %v, connection %d", c.at, got, flows.Number(p))
		}
	}
	if gate.Pass(segment("10.0.0.2:81", "10.0.0.1:40000", second(0))) || gate.Pass(segment("10.0.0.3:80", "10.0.0.1:40000", second(0))) {
		t.Error("other ends pass")
	}
	for flows.count < maxFlows {
		flows.Add(row(1, 20, 1))
	}
	if flows.Add(row(1, 20, 1)) {
		t.Error("no limit")
	}
}

// FuzzParse: an accepted expression is accepted again in its normal form, and
// its gate does not panic.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"connection 3 and token 0xc0ffee00", "address 10.0.0.0/8 and port 443", "time 1.5..2026-01-31T12:00:00Z", "time .."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(parsed.String())
		if err != nil || again.String() != parsed.String() {
			t.Errorf("%q: %v", parsed, err)
		}
		parsed.Gate(nil).Pass(segment("10.0.0.1:1", "10.0.0.2:2", second(0)))
	})
}
