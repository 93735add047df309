package logger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mplab/internal/ifaces"
	"mplab/phonelog/internal/config"
	"mplab/phonelog/internal/logger/record"
)

// settle is the time that interfaces get to settle before the collector is
// asked over them.
const settle = 2 * time.Second

// askMyIP asks the collector over each usable interface for the address that it
// sees: periodically, and when the interfaces have changed.
func (l *Logger) askMyIP(ctx context.Context) {
	period := config.Duration(l.config.MyIP.EveryS)
	look := time.NewTicker(settle)
	defer look.Stop()
	var before []string
	var asked time.Time
	for {
		usable := l.set.Snapshot()
		var now []string
		for _, i := range usable {
			now = append(now, fmt.Sprint(i.Name, i.Addrs))
		}
		if asked.IsZero() || time.Since(asked) >= period || !slices.Equal(before, now) {
			before, asked = now, time.Now()
			l.askOver(ctx, usable)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

func (l *Logger) askOver(ctx context.Context, usable []ifaces.Interface) {
	for _, i := range usable {
		if !i.DefaultIPv4 && !i.DefaultIPv6 {
			continue // no default route
		}
		answer, err := l.uploader.MyIP(ctx, i.Name)
		if ctx.Err() != nil {
			return
		}
		r := &record.MyIP{Interface: i.Name}
		if err != nil {
			text := []rune(err.Error())
			r.Error = string(text[:min(len(text), problemMost)])
		} else {
			connect, rtt := milliseconds(answer.Connect), milliseconds(answer.RTT)
			r.Address, r.Connect, r.RTT = answer.Address.String(), &connect, &rtt
		}
		l.recorder.event(r)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
