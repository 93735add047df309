package rig

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/linkem/probe"
)

const (
	probePort    = 5007
	verifyTries  = 3 // attempts: a busy moment of the machine is no wrong link
	probePings   = 15
	lossEchoes   = 500
	probeSeconds = 0.5 // duration of each blast
	restAfter    = 500 * time.Millisecond

	// Tolerances between requested and measured values of a link.
	rttSlackMs   = 2.5
	rttSlack     = 0.03
	rateSlack    = 0.03
	lossSigmas   = 4
	halfOfPacket = 0.5
)

// ErrLinks means that the links differ from the profile, usually because the machine is too busy to emulate them.
var ErrLinks = errors.New("the links are not those")

// Checked holds the values of a link that were measured before its use.
type Checked struct {
	Link string `json:"link"`
	probe.Result
}

// Verify measures round-trip times, rates and loss of the links. Its error wraps ErrLinks if they differ from the
// profile.
func (r *Rig) Verify(ctx context.Context) ([]Checked, error) {
	var all []Checked
	for _, l := range []struct {
		device string
		want   links.Link
	}{{WiFi, r.profile.WiFi}, {LTE, r.profile.LTE}} {
		checked, err := r.verifyLink(ctx, l.device, l.want)
		if err != nil {
			return nil, err
		}
		all = append(all, checked...)
	}
	return all, nil
}

// verifyLink measures one link to the proxy, and the round-trip time to the origin over that link.
func (r *Rig) verifyLink(ctx context.Context, device string, want links.Link) (all []Checked, err error) {
	if !r.shaped {
		got, err := measure(ctx, probe.Options{Device: device, Server: probeAddress(Proxy)})
		return []Checked{{device, got}}, err
	}
	for range verifyTries {
		all, err = verifyOnce(ctx, device, want)
		if err == nil || ctx.Err() != nil {
			return all, err
		}
		pause(ctx, restAfter)
	}
	return all, fmt.Errorf("%w of %s: %w", ErrLinks, r.profile.Name, err)
}

func verifyOnce(ctx context.Context, device string, want links.Link) ([]Checked, error) {
	options := probe.Options{Device: device, Server: probeAddress(Proxy), DownKbps: want.DownKbps, UpKbps: want.UpKbps}
	if want.LossPercent > 0 {
		options.LossPackets = lossEchoes
	}
	near, err := measure(ctx, options)
	if err != nil {
		return nil, err
	}
	pause(ctx, restAfter)
	far, err := measure(ctx, probe.Options{Device: device, Server: probeAddress(Origin)})
	if err != nil {
		return nil, err
	}
	return []Checked{{device, near}, {device + "+" + wan, far}}, compare(device, want, near, far)
}

// compare returns an error for each value that differs too much from the requested one.
func compare(device string, want links.Link, near, far probe.Result) error {
	return errors.Join(
		closeTo(device+": RTT in ms", near.RTT.Median, want.RTTMs, rttSlackMs+rttSlack*want.RTTMs),
		closeTo(device+": RTT to the origin in ms", far.RTT.Median, want.RTTMs+links.ServerRTTMs, rttSlackMs+rttSlack*want.RTTMs),
		closeTo(device+": kbit/s down", *near.DownKbps, want.DownKbps, rateSlack*want.DownKbps),
		closeTo(device+": kbit/s up", *near.UpKbps, want.UpKbps, rateSlack*want.UpKbps),
		lossIs(device, near, want.LossPercent),
	)
}

func measure(ctx context.Context, o probe.Options) (probe.Result, error) {
	o.Pings, o.Seconds, o.Timeout = probePings, probeSeconds, emulatorPatience
	return probe.Measure(ctx, o)
}

func probeAddress(a netip.Addr) string { return netip.AddrPortFrom(a, probePort).String() }

func closeTo(what string, got, want, slack float64) error {
	if math.Abs(got-want) > slack {
		return fmt.Errorf("%s: measured %.1f, should be %.1f ± %.1f", what, got, want, slack)
	}
	return nil
}

// lossIs compares the loss of echoes, which can be lost in both directions, with the requested loss per direction.
func lossIs(device string, got probe.Result, percent float64) error {
	one := percent / 100
	both := 1 - (1-one)*(1-one)
	sent := float64(got.LossSent)
	slack := lossSigmas*math.Sqrt(sent*both*(1-both)) + halfOfPacket
	return closeTo(device+": lost of "+fmt.Sprint(got.LossSent)+" echoes", got.LossPercent/100*sent, both*sent, slack)
}
