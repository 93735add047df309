package conditions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mplab/internal/strictjson"
	"mplab/mpflex/policy"
)

// PlanConfig holds the sources and the state file of a data plan's count.
type PlanConfig struct {
	State   string              // file of the count, required
	Plan    func() *policy.Plan // returns the current plan; nil: none
	Network string              // "": /sys/class/net
	BootID  string              // "": /proc/sys/kernel/random/boot_id
}

// Plan counts the bytes of each interface from the kernel's counters, since the last
// reset of the data plan, and stores the count in a file. It is not safe for concurrent
// use. Cached is.
type Plan struct {
	config  PlanConfig
	state   *planState // nil until the file is read
	unsaved uint64     // bytes counted since the last write of the file
}

// saveAfter is the number of bytes after which the file is written. Later bytes are
// still in the kernel's counters, and are lost only if the machine restarts.
const saveAfter = 1 << 20

// planState is the content of the file.
type planState struct {
	Period     string              `json:"period"` // first day of the period: 2026-11-15
	Boot       string              `json:"boot"`
	Interfaces map[string]*counted `json:"interfaces"`
}

// counted is the count of one interface.
type counted struct {
	Used  uint64 `json:"used"`  // bytes received and sent in the period
	Index int    `json:"index"` // of the interface: another index is another interface
	Last  uint64 `json:"last"`  // kernel's counter at the last reading
}

// NewPlan returns a source that counts. The first Fill reads the file, or makes it.
// Bytes before that do not count.
func NewPlan(config PlanConfig) *Plan {
	if config.Network == "" {
		config.Network = "/sys/class/net"
	}
	if config.BootID == "" {
		config.BootID = "/proc/sys/kernel/random/boot_id"
	}
	return &Plan{config: config}
}

// Fill updates the count and sets the size and the rest of the plan. c.Time must be
// set: it decides when a new period starts.
func (p *Plan) Fill(c *policy.Conditions) error {
	plan := p.config.Plan()
	if plan == nil {
		return nil
	}
	save, err := p.count(c.Time, plan.ResetDay)
	if err != nil {
		return fmt.Errorf("data plan: %w", err)
	}
	left := plan.Limit
	for device, n := range p.state.Interfaces {
		if plan.Counts(device) {
			left -= float64(n.Used)
		}
	}
	c.PlanLimit, c.PlanLeft = policy.Known(plan.Limit), policy.Known(max(left, 0))
	if !save {
		return nil
	}
	if err := p.save(); err != nil {
		return fmt.Errorf("data plan: %w", err)
	}
	return nil
}

// count adds the bytes since the last reading. save means that the file must be
// written.
func (p *Plan) count(now time.Time, resetDay int) (save bool, err error) {
	boot, err := os.ReadFile(p.config.BootID)
	if err != nil {
		return false, err
	}
	devices, err := readDevices(p.config.Network)
	if err != nil {
		return false, err
	}
	if p.state == nil {
		if err := p.load(); err != nil {
			return false, err
		}
	}
	first := p.state == nil
	if first {
		p.state = &planState{Period: periodOf(now, resetDay), Boot: bootID(boot), Interfaces: make(map[string]*counted)}
		for name, d := range devices { // sets the counters without counting bytes as used
			p.state.Interfaces[name] = &counted{Index: d.index, Last: d.bytes}
		}
	}
	changed := p.state.turn(now, resetDay, devices)
	bytes, others := p.state.add(bootID(boot), devices)
	p.unsaved += bytes
	return first || changed || others || p.unsaved >= saveAfter, nil
}

func bootID(text []byte) string { return strings.TrimSpace(string(text)) }

// implausible is the year before which a clock counts as not set.
const implausible = 2024

// turn starts a new period on its first day. If the clock was ahead and was set back,
// the count continues.
func (s *planState) turn(now time.Time, resetDay int, devices map[string]device) (changed bool) {
	period := periodOf(now, resetDay)
	if period == s.Period || now.Year() < implausible {
		return false
	}
	if period > s.Period {
		for name, n := range s.Interfaces {
			if n.Used = 0; devices[name] == (device{}) { // removed interface
				delete(s.Interfaces, name)
			}
		}
	}
	s.Period = period
	return true
}

// add counts the new bytes of the devices and returns their number. others means that
// fields other than counts have changed.
func (s *planState) add(boot string, devices map[string]device) (bytes uint64, others bool) {
	others = boot != s.Boot
	for name, d := range devices {
		n, known := s.Interfaces[name]
		if !known {
			n = &counted{}
			s.Interfaces[name] = n
		}
		fresh := d.bytes - n.Last
		if boot != s.Boot || d.index != n.Index || d.bytes < n.Last { // the kernel's counter restarted at 0
			fresh, others = d.bytes, true
		}
		n.Used, n.Index, n.Last = n.Used+fresh, d.index, d.bytes
		bytes += fresh
	}
	s.Boot = boot
	return bytes, others
}

// load reads the file. If there is no file, the state stays nil. A damaged file is an
// error.
func (p *Plan) load() error {
	data, err := os.ReadFile(p.config.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var state planState
	err = strictjson.Decode(data, &state)
	if err == nil {
		err = state.check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; repair or remove it", p.config.State, err)
	}
	p.state = &state
	return nil
}

func (s *planState) check() error {
	if _, err := time.Parse(time.DateOnly, s.Period); err != nil {
		return fmt.Errorf("period: found %.40q, a day such as 2026-11-15 is needed", s.Period)
	}
	if s.Interfaces == nil {
		return errors.New("interfaces: missing")
	}
	for name, n := range s.Interfaces {
		if n == nil {
			return fmt.Errorf("interfaces: %.40q has no count", name)
		}
	}
	return nil
}

// save writes the file atomically: a crash leaves the old or the new one.
func (p *Plan) save() error {
	data, err := json.MarshalIndent(p.state, "", "  ")
	if err != nil {
		return err
	}
	next := p.config.State + ".new"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, p.config.State); err != nil {
		return err
	}
	p.unsaved = 0
	return nil
}

// periodOf returns the first day of the period that contains t, by the calendar of t's
// time zone.
func periodOf(t time.Time, resetDay int) string {
	year, month, day := t.Date()
	start := min(resetDay, daysIn(year, month))
	if day < start {
		if month--; month == 0 {
			year, month = year-1, time.December
		}
		start = min(resetDay, daysIn(year, month))
	}
	return time.Date(year, month, start, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// device is the kernel's count of an interface.
type device struct {
	index int
	bytes uint64 // received and sent
}

// readDevices reads the counters of all interfaces except loopback.
func readDevices(root string) (map[string]device, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	devices := make(map[string]device)
	for _, entry := range entries {
		if entry.Name() == "lo" {
			continue
		}
		d, err := readDevice(filepath.Join(root, entry.Name()))
		switch {
		case err == nil:
			devices[entry.Name()] = d
		case isGone(err):
		default:
			return nil, err
		}
	}
	return devices, nil
}

func readDevice(path string) (device, error) {
	index, err := readCount(filepath.Join(path, "ifindex"))
	if err != nil {
		return device{}, err
	}
	received, err := readCount(filepath.Join(path, "statistics", "rx_bytes"))
	if err != nil {
		return device{}, err
	}
	sent, err := readCount(filepath.Join(path, "statistics", "tx_bytes"))
	return device{int(index), received + sent}, err
}

// isGone reports whether an interface disappeared during the reading, or the entry is
// not an interface: the directory has some plain files.
func isGone(err error) bool {
	for _, gone := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENODEV, syscall.EINVAL} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

func readCount(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: found %.40q, a count is needed", path, strings.TrimSpace(string(text)))
	}
	return n, nil
}
