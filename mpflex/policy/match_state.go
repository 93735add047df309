package policy

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// comparison is a comparison operator.
type comparison uint8

const (
	below comparison = iota
	atMost
	above
	atLeast
)

var comparisons = [...]string{below: "<", atMost: "<=", above: ">", atLeast: ">="}

func (op comparison) holds(value, limit float64) bool {
	switch op {
	case below:
		return value < limit
	case atMost:
		return value <= limit
	case above:
		return value > limit
	}
	return value >= limit
}

// threshold compares a reading with a limit.
type threshold struct {
	op    comparison
	limit float64 // in percent, bytes or bit/s
	unit  string  // as in the file: "%", "MB", "Mbit/s"
	scale float64 // size of the unit
}

func (t threshold) of(r Reading) bool { return r.Known && t.op.holds(r.Value, t.limit) }

func (t threshold) text() string {
	return comparisons[t.op] + " " + number(t.limit/t.scale) + " " + t.unit
}

// show returns a reading in the threshold's unit.
func (t threshold) show(r Reading) string {
	if !r.Known {
		return "unknown"
	}
	return number(r.Value/t.scale) + " " + t.unit
}

// number formats a value with three significant digits, or as a whole number from 100
// on.
func number(value float64) string {
	if math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

type battery struct{ threshold }

func (b battery) holds(_ *Flow, c *Conditions) bool   { return b.of(c.Battery) }
func (b battery) found(_ *Flow, c *Conditions) string { return "battery " + b.show(c.Battery) }

type wifiThroughput struct{ threshold }

func (w wifiThroughput) holds(_ *Flow, c *Conditions) bool { return w.of(c.WiFiThroughput) }
func (w wifiThroughput) found(_ *Flow, c *Conditions) string {
	return "WiFi throughput " + w.show(c.WiFiThroughput)
}

// planLeft compares the remaining bytes, or their share of the plan.
type planLeft struct {
	threshold
	share bool
}

func (p planLeft) left(c *Conditions) Reading {
	if !p.share {
		return c.PlanLeft
	}
	if !c.PlanLeft.Known || !c.PlanLimit.Known || c.PlanLimit.Value <= 0 {
		return Reading{}
	}
	return Known(100 * c.PlanLeft.Value / c.PlanLimit.Value)
}
func (p planLeft) holds(_ *Flow, c *Conditions) bool   { return p.of(p.left(c)) }
func (p planLeft) found(_ *Flow, c *Conditions) string { return "plan left " + p.show(p.left(c)) }

// dayTime is a range of times of day, in seconds since midnight. It includes from and
// excludes until. If until is earlier than from, the range crosses midnight.
type dayTime struct {
	from, until int
	zone        *time.Location // nil: the phone's time zone
}

func (d dayTime) has(second int) bool {
	if d.from < d.until {
		return d.from <= second && second < d.until
	}
	return second >= d.from || second < d.until
}

// local returns t in the time zone of the range.
func (d dayTime) local(t time.Time) time.Time {
	if d.zone == nil {
		return t
	}
	return t.In(d.zone)
}

func (d dayTime) zoneText() string {
	if d.zone == nil {
		return ""
	}
	return " " + d.zone.String()
}

func (d dayTime) String() string { return clock(d.from) + "-" + clock(d.until) + d.zoneText() }

func clock(second int) string { return fmt.Sprintf("%02d:%02d", second/3600, second/60%60) }

type hours []dayTime

func (h hours) holds(_ *Flow, c *Conditions) bool {
	if c.Time.IsZero() {
		return false
	}
	for i := range h {
		hour, minute, second := h[i].local(c.Time).Clock()
		if h[i].has(hour*3600 + minute*60 + second) {
			return true
		}
	}
	return false
}

func (h hours) text() string { return listed(h, dayTime.String) }

func (h hours) found(_ *Flow, c *Conditions) string {
	if c.Time.IsZero() {
		return "time unknown"
	}
	return "time " + h[0].local(c.Time).Format("15:04:05") + h[0].zoneText()
}
