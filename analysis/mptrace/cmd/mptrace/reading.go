package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"mplab/analysis/mptrace/internal/network"
	"mplab/analysis/mptrace/internal/source"
)

// reading holds the flags that select how captures are read, and --samples, for
// which each command has a separate help text.
type reading struct {
	samples  int
	networks []string
	ifNames  []string
	tunnels  bool
}

func (r *reading) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&r.networks, "network", nil, "name a network: wlan0=wifi, 192.168.0.0/16=wifi (default: guessed from the interface)")
	flags.StringSliceVar(&r.ifNames, "interface-name", nil, "name an interface of a capture of all of them by its index: 3=wlan0")
	flags.BoolVar(&r.tunnels, "tunnels", false, "follow the packets in tunnels (VXLAN, GRE, IP in IP, GTP-U), at one level")
}

func (r *reading) options() (source.Options, *network.Rules, error) {
	o := source.Options{Tunnels: r.tunnels}
	if r.samples < -1 || r.samples == 0 {
		return o, nil, fmt.Errorf("--samples %d: want 1 or more, or -1 for all", r.samples)
	}
	for _, given := range r.ifNames {
		number, name, found := strings.Cut(given, "=")
		index, err := strconv.ParseUint(number, 10, 32)
		if !found || err != nil || name == "" {
			return o, nil, fmt.Errorf("--interface-name %q: want INDEX=NAME, such as 3=wlan0", given)
		}
		if o.IfNames == nil {
			o.IfNames = map[uint32]string{}
		}
		o.IfNames[uint32(index)] = name
	}
	rules, err := network.Parse(r.networks)
	if err != nil {
		return o, nil, fmt.Errorf("--network: %w", err)
	}
	return o, rules, nil
}
