package android

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"mplab/phonelog/internal/logger/record"
)

// A fix: Location[gps 50.668812,4.615433 hAcc=12.0 et=+1h2m3s4ms alt=150.0 vel=1.2 bear=90.0 …].
// In some languages: 50,668812,4,615433 hAcc=12,0. A redacted fix such as
// Location[gps 50.******,4.******] does not match.
var (
	fix   = regexp.MustCompile(`\bLocation\[([A-Za-z_]{1,32}) (-?\d{1,3}[.,]\d+),(-?\d{1,3}[.,]\d+)([^\[\]{}]*)`)
	since = regexp.MustCompile(`^\+?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)
)

// Locations parses `dumpsys location` and returns the last fix of each provider. If the phone has no fix or location is
// disabled, the result is empty, without an error.
func Locations(text string) ([]record.Location, error) {
	if err := Refused(text); err != nil {
		return nil, err
	}
	if !strings.Contains(text, "ocation") {
		return nil, unread("location", text)
	}
	var found []record.Location
	for line := range strings.Lines(text) {
		// Android 10 lists "Last Known Locations" as "gps: Location[gps …]", later releases have "last location=" for
		// each provider. Histories contain older fixes; taking the latest one per provider excludes them.
		m := fix.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "coarse") {
			continue
		}
		l, ok := location(m)
		if !ok {
			continue
		}
		found = latest(found, l)
	}
	return found, nil
}

// latest keeps the latest fix of each provider; without times, the first one.
func latest(found []record.Location, l record.Location) []record.Location {
	for i, other := range found {
		if other.Provider != l.Provider {
			continue
		}
		if l.Fix != nil && (other.Fix == nil || *l.Fix > *other.Fix) {
			found[i] = l
		}
		return found
	}
	if len(found) == 16 { // more providers than any phone has
		return found
	}
	return append(found, l)
}

func location(m []string) (record.Location, bool) {
	latitude, longitude := realNumber(m[2]), realNumber(m[3])
	if latitude == nil || longitude == nil || *latitude < -90 || *latitude > 90 || *longitude < -180 || *longitude > 180 {
		return record.Location{}, false
	}
	l := record.Location{Provider: m[1], Latitude: *latitude, Longitude: *longitude}
	for field := range strings.FieldsSeq(m[4]) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "hAcc", "acc":
			l.Accuracy = positive(realNumber(value))
		case "alt":
			l.Altitude = realNumber(value)
		case "vel":
			l.Speed = positive(realNumber(value))
		case "bear":
			if l.Bearing = positive(realNumber(value)); l.Bearing != nil && *l.Bearing > 360 {
				l.Bearing = nil
			}
		case "et":
			l.Fix = elapsed(value)
		}
	}
	return l, true
}

func positive(f *float64) *float64 {
	if f == nil || *f < 0 {
		return nil
	}
	return f
}

// elapsed parses TimeUtils.formatDuration: +1d2h3m4s5ms since boot. It returns seconds.
func elapsed(text string) *float64 {
	m := since.FindStringSubmatch(text)
	if m == nil || text == "" || text == "+" {
		return nil
	}
	total := 0.0
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseUint(m[i+1], 10, 31)
		if err != nil {
			return nil
		}
		total += float64(n) * unit.Seconds()
	}
	return &total
}
