package links

import (
	"fmt"
	"strings"
)

// Common values of all shaped profiles.
const (
	ServerRTTMs = 4.0     // proxy – origin, no rate limit
	QueueBytes  = 150_000 // drop tail, per direction of a link
)

// Link is a link of the phone to the proxy. Rates are of IP bytes.
type Link struct {
	DownKbps    float64 `json:"down_kbps"`
	UpKbps      float64 `json:"up_kbps"`
	RTTMs       float64 `json:"rtt_ms"`
	LossPercent float64 `json:"loss_percent"` // random packet loss, per direction
}

// Profile is a set of link conditions. An unshaped profile uses plain virtual Ethernet; there the CPU is the limit.
type Profile struct {
	Name   string
	WiFi   Link
	LTE    Link
	Shaped bool
	About  string // for the report
}

var (
	wifi = Link{DownKbps: 7040, UpKbps: 2020, RTTMs: 50}  // nikravesh2016 §5
	lte  = Link{DownKbps: 9185, UpKbps: 2286, RTTMs: 70}  // nikravesh2016 §5
	long = Link{DownKbps: 9000, UpKbps: 2286, RTTMs: 150} // LTE of §5.4, first case; the uplink of §5
)

// Paper is the default profile of a workload.
const Paper = "paper"

// Unshaped is the profile in which the CPU is the limit.
const Unshaped = "unshaped"

var profiles = []Profile{
	{Paper, wifi, lte, true, "the paper's links: WiFi 7.04 / 2.02 Mbit/s, 50 ms; LTE 9.185 / 2.286 Mbit/s, 70 ms (nikravesh2016 §5)"},
	{"loss1", with(wifi, func(l *Link) { l.LossPercent = 1 }), lte, true, "the paper's links, WiFi with 1 % random loss in each direction"},
	{"txdelay", with(wifi, func(l *Link) { l.RTTMs = 20 }), lte, true, "the paper's links, WiFi with an RTT of 20 ms (nikravesh2016 figure 17)"},
	{"r1", with(wifi, func(l *Link) { l.DownKbps = 10000 }), long, true, "WiFi 10 Mbit/s, 50 ms; LTE 9 Mbit/s, 150 ms (nikravesh2016 §5.4)"},
	{
		"r2", with(wifi, func(l *Link) { l.DownKbps, l.RTTMs = 12000, 300 }), with(lte, func(l *Link) { l.DownKbps = 9000 }), true,
		"WiFi 12 Mbit/s, 300 ms; LTE 9 Mbit/s, 70 ms (nikravesh2016 §5.4)",
	},
	{Name: Unshaped, About: "virtual Ethernet without emulation: the processor is the limit"},
}

func with(l Link, change func(*Link)) Link {
	change(&l)
	return l
}

// Find returns the profile with a name; "" means Paper. Its error lists the names.
func Find(name string) (Profile, error) {
	if name == "" {
		name = Paper
	}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return Profile{}, fmt.Errorf("there are no links %q; there are %s", name, strings.Join(names, ", "))
}

// Lossless returns the profile without random loss: the limit of a lossy link is that of the lossless one.
func (p Profile) Lossless() Profile {
	p.WiFi.LossPercent, p.LTE.LossPercent = 0, 0
	return p
}
