package conditions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mplab/mpflex/policy"
)

// PlanConfig says what a data plan is counted from and where.
type PlanConfig struct {
	State   string              // the file that keeps the count, needed
	Plan    func() *policy.Plan // the plan in force; nil when there is none
	Network string              // "": /sys/class/net
	BootID  string              // "": /proc/sys/kernel/random/boot_id
}

// Plan counts the bytes of every interface, as the kernel does, from one reset
// of the data plan to the next, and keeps the count in a file. It is not safe
// for concurrent use; Cached is.
type Plan struct {
	config  PlanConfig
	state   *planState // nil until the file was read
	unsaved uint64     // bytes counted since the file was written
}

// saveAfter is after how many bytes the file is written again. What it misses
// is in the kernel's count, and lost only when the machine starts anew.
const saveAfter = 1 << 20

// planState is the file.
type planState struct {
	Period     string              `json:"period"` // the day on which it began: 2026-11-15
	Boot       string              `json:"boot"`
	Interfaces map[string]*counted `json:"interfaces"`
}

// counted are the bytes of one interface.
type counted struct {
	Used  uint64 `json:"used"`  // received and sent in the period
	Index int    `json:"index"` // of the interface: another one is another interface
	Last  uint64 `json:"last"`  // the kernel's count when it was read last
}

// NewPlan returns a source that counts; the file is read when it is first
// asked, and made when there is none. Bytes from before that do not count.
func NewPlan(config PlanConfig) *Plan {
	if config.Network == "" {
		config.Network = "/sys/class/net"
	}
	if config.BootID == "" {
		config.BootID = "/proc/sys/kernel/random/boot_id"
	}
	return &Plan{config: config}
}

// Fill counts up to now and sets the size of the plan and what is left of it.
// The time must be set: it decides when the plan begins anew.
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

// count adds the bytes since the last time; save tells that the file is to be
// written again.
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
		for name, d := range devices { // only where they stand
			p.state.Interfaces[name] = &counted{Index: d.index, Last: d.bytes}
		}
	}
	changed := p.state.turn(now, resetDay, devices)
	bytes, others := p.state.add(bootID(boot), devices)
	p.unsaved += bytes
	return first || changed || others || p.unsaved >= saveAfter, nil
}

func bootID(text []byte) string { return strings.TrimSpace(string(text)) }

// implausible is before which year a clock was not set yet.
const implausible = 2024

// turn begins a new period when its day has come. A clock that was ahead, and
// is no more, does not: the count goes on.
func (s *planState) turn(now time.Time, resetDay int, devices map[string]device) (changed bool) {
	period := periodOf(now, resetDay)
	if period == s.Period || now.Year() < implausible {
		return false
	}
	if period > s.Period {
		for name, n := range s.Interfaces {
			if n.Used = 0; devices[name] == (device{}) { // it is gone
				delete(s.Interfaces, name)
			}
		}
	}
	s.Period = period
	return true
}

// add counts what the devices have now, and returns how much that is; others
// tells that not only counts have changed.
func (s *planState) add(boot string, devices map[string]device) (bytes uint64, others bool) {
	others = boot != s.Boot
	for name, d := range devices {
		n, known := s.Interfaces[name]
		if !known {
			n = &counted{}
			s.Interfaces[name] = n
		}
		fresh := d.bytes - n.Last
		if boot != s.Boot || d.index != n.Index || d.bytes < n.Last { // the kernel began at 0 again
			fresh, others = d.bytes, true
		}
		n.Used, n.Index, n.Last = n.Used+fresh, d.index, d.bytes
		bytes += fresh
	}
	s.Boot = boot
	return bytes, others
}

// load reads the file; without one the state stays nil. A damaged file is not
// taken for an empty one.
func (p *Plan) load() error {
	data, err := os.ReadFile(p.config.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var state planState
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&state)
	if err == nil {
		if _, rest := decoder.Token(); !errors.Is(rest, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
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

// save writes the file. A crash leaves the old or the new one.
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

// periodOf returns the day on which the period around a time began, by the
// calendar of the time's own zone.
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

// device is an interface as the kernel counts it.
type device struct {
	index int
	bytes uint64 // received and sent
}

// readDevices reads the counts of all interfaces but loopback.
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

// isGone tells whether what was read went away meanwhile, or is no interface:
// the directory has some plain files.
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
