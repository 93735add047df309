package android

import (
	"strings"

	"mplab/phonelog/internal/logger/record"
)

// Battery parses `dumpsys battery`.
func Battery(text string) (record.Battery, error) {
	var b record.Battery
	if err := Refused(text); err != nil {
		return b, err
	}
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); found && values[key] == "" {
			values[key] = strings.TrimSpace(value)
		}
	}
	level, scale := integer(values["level"]), integer(values["scale"])
	if level != nil && *level >= 0 {
		percent := float64(*level)
		if scale != nil && *scale > 0 {
			percent *= 100 / float64(*scale)
		}
		if percent <= 100 {
			b.Level = &percent
		}
	}
	// BatteryManager.BATTERY_STATUS_*.
	b.Status = map[string]string{"1": "unknown", "2": "charging", "3": "discharging", "4": "not_charging", "5": "full"}[values["status"]]
	for _, feed := range []struct{ key, is string }{{"AC powered", "ac"}, {"USB powered", "usb"}, {"Wireless powered", "wireless"}, {"Dock powered", "dock"}} {
		switch values[feed.key] {
		case "true":
			if b.Plugged == "" || b.Plugged == "none" {
				b.Plugged = feed.is
			}
		case "false":
			if b.Plugged == "" {
				b.Plugged = "none"
			}
		}
	}
	if t := within(integer(values["temperature"]), -1000, 2000); t != nil {
		celsius := float64(*t) / 10
		b.Temperature = &celsius
	}
	if mv := within(integer(values["voltage"]), 1, 100000); mv != nil {
		volt := float64(*mv) / 1000
		if *mv < 100 { // a few vendors write volts
			volt = float64(*mv)
		}
		b.Voltage = &volt
	}
	if b.Level == nil && b.Status == "" && b.Plugged == "" {
		return record.Battery{}, unread("battery", text)
	}
	return b, nil
}
