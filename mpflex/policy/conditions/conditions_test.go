package conditions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/policy"
)

// tree makes files in a directory. A name with a final slash is a directory.
func tree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBattery(t *testing.T) {
	const phone = "battery/"
	cases := []struct {
		about string
		files map[string]string
		want  policy.Reading
		err   string // ROOT is the directory
	}{
		{"a phone", map[string]string{phone + "type": "Battery\n", phone + "capacity": "83\n", phone + "present": "1\n", "usb/type": "USB\n"}, policy.Known(83), ""},
		{"on mains only", map[string]string{"ac/type": "Mains\n", "ac/online": "1\n"}, policy.Reading{}, ""},
		{"a pen with a battery", map[string]string{"pen/type": "Battery", "pen/scope": "Device", "pen/capacity": "5"}, policy.Reading{}, ""},
		{"a battery that was taken out", map[string]string{phone + "type": "Battery", phone + "present": "0", phone + "capacity": "0"}, policy.Reading{}, ""},
		{"a battery without a level", map[string]string{phone + "type": "Battery", phone + "status": "Charging"}, policy.Reading{}, ""},
		{"two batteries", map[string]string{"BAT0/type": "Battery", "BAT0/capacity": "20", "BAT1/type": "Battery", "BAT1/capacity": "90"}, policy.Known(55), ""},
		{"nonsense", map[string]string{phone + "type": "Battery", phone + "capacity": "full"}, policy.Reading{},
			`ROOT/battery/capacity: found "full", a level within 0 and 100 is needed`},
		{"out of range", map[string]string{phone + "type": "Battery", phone + "capacity": "101"}, policy.Reading{},
			`ROOT/battery/capacity: found "101", a level within 0 and 100 is needed`},
	}
	for _, c := range cases {
		root := t.TempDir()
		tree(t, root, c.files)
		var got policy.Conditions
		err := Battery{Root: root}.Fill(&got)
		if want := strings.ReplaceAll(c.err, "ROOT", root); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", c.about, err, want)
		}
		if got.Battery != c.want {
			t.Errorf("%s: %+v", c.about, got.Battery)
		}
	}
	var got policy.Conditions
	if err := (Battery{Root: filepath.Join(t.TempDir(), "none")}).Fill(&got); err != nil || got.Battery.Known {
		t.Errorf("no power supplies: %+v, %v", got.Battery, err)
	}
}

func TestBatteryFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "level")
	var got policy.Conditions
	if err := (BatteryFile{file}).Fill(&got); err != nil || got.Battery.Known {
		t.Errorf("no file: %+v, %v", got.Battery, err)
	}
	for text, want := range map[string]policy.Reading{"12.5 %\n": policy.Known(12.5), "0": policy.Known(0), "100%": policy.Known(100), "-1": {}, "NaN": {}, "": {}} {
		tree(t, filepath.Dir(file), map[string]string{"level": text})
		got = policy.Conditions{}
		if err := (BatteryFile{file}).Fill(&got); got.Battery != want || (err == nil) != want.Known {
			t.Errorf("%q: %+v, %v", text, got.Battery, err)
		}
	}
}

// phone is a machine with interfaces, simulated by files.
type phone struct {
	t    *testing.T
	root string
	plan *policy.Plan
}

func newPhone(t *testing.T) *phone {
	p := &phone{t: t, root: t.TempDir(), plan: &policy.Plan{Limit: 1e9, ResetDay: 15, Interfaces: []string{"cellular"}}}
	p.boot("first")
	tree(t, p.root, map[string]string{"net/bonding_masters": "\n"}) // a plain file, as the kernel has one
	p.set("lo", 1, 5e8)
	return p
}

func (p *phone) boot(id string) { tree(p.t, p.root, map[string]string{"boot_id": id + "\n"}) }

// set sets the index and the count of an interface. A third of the bytes was sent.
func (p *phone) set(device string, index int, bytes uint64) {
	tree(p.t, p.root, map[string]string{
		"net/" + device + "/ifindex":             fmt.Sprintln(index),
		"net/" + device + "/statistics/tx_bytes": fmt.Sprintln(bytes / 3),
		"net/" + device + "/statistics/rx_bytes": fmt.Sprintln(bytes - bytes/3),
	})
}

func (p *phone) remove(device string) {
	if err := os.RemoveAll(filepath.Join(p.root, "net", device)); err != nil {
		p.t.Fatal(err)
	}
}

// start returns the source of a restarted program.
func (p *phone) start() *Plan {
	return NewPlan(PlanConfig{
		State: filepath.Join(p.root, "plan.json"), Plan: func() *policy.Plan { return p.plan },
		Network: filepath.Join(p.root, "net"), BootID: filepath.Join(p.root, "boot_id"),
	})
}

// used returns the used bytes of the plan on a day.
func (p *phone) used(counter *Plan, day string) float64 {
	p.t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		p.t.Fatal(err)
	}
	c := policy.Conditions{Time: at.Add(12 * time.Hour)}
	if err := counter.Fill(&c); err != nil {
		p.t.Fatal(err)
	}
	if c.PlanLimit != policy.Known(p.plan.Limit) || !c.PlanLeft.Known {
		p.t.Fatalf("%+v", c)
	}
	return c.PlanLimit.Value - c.PlanLeft.Value
}

func (p *phone) expect(counter *Plan, day string, want float64) {
	p.t.Helper()
	if got := p.used(counter, day); got != want {
		p.t.Errorf("%s: %v bytes used, want %v", day, got, want)
	}
}

func TestPlanCounts(t *testing.T) {
	p := newPhone(t)
	p.set("rmnet0", 2, 70e6)
	p.set("wlan0", 3, 10e6)
	counter := p.start()
	p.expect(counter, "2026-11-20", 0) // earlier bytes do not count
	p.set("rmnet0", 2, 75e6)
	p.set("wlan0", 3, 99e6)
	p.expect(counter, "2026-11-20", 5e6)
	p.expect(counter, "2026-11-21", 5e6)

	counter = p.start() // the program restarts
	p.set("rmnet0", 2, 76e6)
	p.expect(counter, "2026-11-21", 6e6)

	p.set("rmnet0", 9, 100e6) // another interface with the same name and a larger count
	p.expect(counter, "2026-11-21", 106e6)
	p.remove("rmnet0")
	p.expect(counter, "2026-11-21", 106e6)
	p.set("rmnet1", 10, 4e6)
	p.expect(counter, "2026-11-22", 110e6)
	p.set("rmnet1", 10, 1e6) // the modem restarted its counter
	p.expect(counter, "2026-11-22", 111e6)

	p.boot("second") // the machine restarts
	p.set("rmnet1", 10, 2e6)
	counter = p.start()
	p.expect(counter, "2026-11-23", 113e6)

	p.plan = &policy.Plan{Limit: 2e9, ResetDay: 15, Interfaces: []string{"wlan0"}} // other rules
	p.expect(counter, "2026-11-23", 89e6+99e6)                                     // counted before and since the restart
	p.set("wlan0", 3, 5e9)
	p.expect(counter, "2026-11-23", 2e9) // nothing is left
	p.plan = nil
	var c policy.Conditions
	if err := counter.Fill(&c); err != nil || c.PlanLeft.Known || c.PlanLimit.Known {
		t.Errorf("without a plan: %+v, %v", c, err)
	}
}

func TestPlanBeginsAnew(t *testing.T) {
	p := newPhone(t)
	p.set("rmnet0", 2, 0)
	counter := p.start()
	total := uint64(0)
	use := func(bytes uint64) {
		total += bytes
		p.set("rmnet0", 2, total)
	}
	p.expect(counter, "2026-11-13", 0)
	steps := []struct {
		day  string
		use  uint64
		want float64
	}{
		{"2026-11-14", 10, 10},
		{"2026-11-15", 1, 1}, // the reset day
		{"2026-12-14", 5, 6},
		{"2026-12-16", 2, 2}, // a day late
		{"2027-01-15", 3, 3},
		{"1970-01-01", 4, 7}, // the clock was not set
		{"2027-01-16", 1, 8},
		{"2036-05-01", 2, 2}, // the clock was ahead
		{"2027-01-17", 1, 3}, // and was set back: nothing is lost
		{"2027-02-15", 5, 5},
	}
	for _, s := range steps {
		use(s.use)
		p.expect(counter, s.day, s.want)
	}
	// Removed interfaces are not kept forever.
	p.set("rmnet7", 7, 1)
	p.used(counter, "2027-02-16")
	p.remove("rmnet7")
	p.used(counter, "2027-03-16")
	if data, err := os.ReadFile(filepath.Join(p.root, "plan.json")); err != nil || strings.Contains(string(data), "rmnet7") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestPeriods(t *testing.T) {
	cases := []struct {
		day      string
		resetDay int
		want     string
	}{
		{"2026-03-15", 15, "2026-03-15"}, {"2026-03-14", 15, "2026-02-15"}, {"2026-01-01", 2, "2025-12-02"}, {"2026-03-01", 1, "2026-03-01"},
		{"2026-02-27", 31, "2026-01-31"}, {"2026-02-28", 31, "2026-02-28"}, {"2028-02-28", 30, "2028-01-30"}, {"2028-02-29", 30, "2028-02-29"},
		{"2026-04-29", 31, "2026-03-31"}, {"2026-04-30", 31, "2026-04-30"}, {"2026-05-30", 31, "2026-04-30"},
	}
	for _, c := range cases {
		at, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		if got := periodOf(at, c.resetDay); got != c.want {
			t.Errorf("%s, reset on the %d: %s, want %s", c.day, c.resetDay, got, c.want)
		}
	}
	// Each period starts at or before its days, periods are consecutive, and a year has
	// twelve.
	for resetDay := 1; resetDay <= 31; resetDay++ {
		last, periods := "", 0
		for day := range 365 + 366 {
			at := time.Date(2027, 1, 1+day, 23, 59, 0, 0, time.UTC)
			got := periodOf(at, resetDay)
			if got < last || got > at.Format(time.DateOnly) {
				t.Fatalf("reset on the %d, %s: %s after %s", resetDay, at, got, last)
			}
			if got != last && got == at.Format(time.DateOnly) {
				periods++
			}
			last = got
		}
		if periods != 24 {
			t.Errorf("reset on the %d: %d periods began in two years", resetDay, periods)
		}
	}
}

// TestPlanSpareWrites checks that the file is written after many bytes, not at each
// reading.
func TestPlanSpareWrites(t *testing.T) {
	p := newPhone(t)
	p.set("rmnet0", 2, 0)
	counter := p.start()
	p.used(counter, "2026-11-20")
	file := filepath.Join(p.root, "plan.json")
	content := func() string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := content()
	p.set("rmnet0", 2, saveAfter-1)
	p.used(counter, "2026-11-20")
	if content() != first {
		t.Error("written for less than a MiB")
	}
	p.set("rmnet0", 2, saveAfter)
	p.used(counter, "2026-11-20")
	if content() == first {
		t.Error("not written")
	}
	p.expect(p.start(), "2026-11-20", saveAfter)
}

func TestBadPlanFiles(t *testing.T) {
	cases := []struct{ text, want string }{
		{"", "line 1, column 1: not valid JSON: unexpected end of JSON input"},
		{"{}", `period: found "", a day such as 2026-11-15 is needed`},
		{`{"period": "yesterday", "interfaces": {}}`, `period: found "yesterday", a day such as 2026-11-15 is needed`},
		{`{"period": "2026-11-15"}`, "interfaces: missing"},
		{`{"period": "2026-11-15", "interfaces": {"rmnet0": null}}`, `interfaces: "rmnet0" has no count`},
		{`{"period": "2026-11-15", "interfaces": {}, "limit": 5}`, "limit: unknown key; allowed: boot, interfaces, period"},
		{`{"period": "2026-11-15", "interfaces": {}} {}`, "line 1, column 44: not valid JSON: invalid character '{' after top-level value"},
		{`{"period": "2026-11-15", "interfaces": {"rmnet0": {}, "rmnet0": {}}}`, "interfaces.rmnet0: given twice; remove one"},
		{`{"period": "2026-11-15", "interfaces": {"rmnet0": {"used": -1}}}`, "interfaces.rmnet0.used: must be a whole number from 0 to 2^64-1, found -1"},
	}
	for _, c := range cases {
		p := newPhone(t)
		p.set("rmnet0", 2, 0)
		tree(t, p.root, map[string]string{"plan.json": c.text})
		got := policy.Conditions{Time: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
		err := p.start().Fill(&got)
		want := "data plan: " + filepath.Join(p.root, "plan.json") + ": " + c.want
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "; repair or remove it") || got.PlanLeft.Known {
			t.Errorf("%s\n got: %v\nwant: %s", c.text, err, want)
		}
		if data, err := os.ReadFile(filepath.Join(p.root, "plan.json")); err != nil || string(data) != c.text {
			t.Errorf("%q became %q, %v", c.text, data, err)
		}
	}
}

func TestBadCounts(t *testing.T) {
	p := newPhone(t)
	p.set("rmnet0", 2, 0)
	tree(t, p.root, map[string]string{"net/rmnet0/statistics/rx_bytes": "many\n"})
	c := policy.Conditions{Time: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
	want := fmt.Sprintf("data plan: %s/net/rmnet0/statistics/rx_bytes: found %q, a count is needed", p.root, "many")
	if err := p.start().Fill(&c); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(p.root, "boot_id")); err != nil {
		t.Fatal(err)
	}
	if err := p.start().Fill(&c); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// A count that cannot be stored is still reported.
	p = newPhone(t)
	p.set("rmnet0", 2, 0)
	counter := p.start()
	counter.config.State = filepath.Join(p.root, "none", "plan.json")
	if err := counter.Fill(&c); !errors.Is(err, os.ErrNotExist) || c.PlanLeft != policy.Known(1e9) {
		t.Errorf("%+v, %v", c.PlanLeft, err)
	}
}

// TestThisMachine checks that the counters of this machine can be read.
func TestThisMachine(t *testing.T) {
	p := newPhone(t)
	counter := NewPlan(PlanConfig{State: filepath.Join(p.root, "state"), Plan: func() *policy.Plan { return p.plan }})
	var c policy.Conditions
	if err := (All{Clock{}, Battery{}, counter}).Fill(&c); err != nil || c.PlanLeft != policy.Known(1e9) || c.Time.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestThroughput(t *testing.T) {
	var wifi Throughput
	var c policy.Conditions
	read := func() policy.Reading {
		c = policy.Conditions{}
		if err := wifi.Fill(&c); err != nil {
			t.Fatal(err)
		}
		return c.WiFiThroughput
	}
	if got := read(); got.Known {
		t.Errorf("%+v", got)
	}
	wifi.Set(0)
	if got := read(); got != policy.Known(0) {
		t.Errorf("%+v", got)
	}
	wifi.Set(2.5e6)
	if got := read(); got != policy.Known(2.5e6) {
		t.Errorf("%+v", got)
	}
	wifi.Forget()
	if got := read(); got.Known {
		t.Errorf("%+v", got)
	}
}

// counting counts how often it is read.
type counting struct {
	asked int
	err   error
}

func (s *counting) Fill(c *policy.Conditions) error {
	s.asked++
	c.Battery = policy.Known(float64(s.asked))
	return s.err
}

func TestCached(t *testing.T) {
	source := &counting{}
	slow := NewCached(source, time.Hour, nil)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 500 {
				c := policy.Conditions{WiFiThroughput: policy.Known(7)}
				if err := slow.Fill(&c); err != nil || c.Battery != policy.Known(1) || c.WiFiThroughput != policy.Known(7) || !c.Time.IsZero() {
					t.Errorf("%+v, %v", c, err)
				}
			}
		})
	}
	wait.Wait()
	if source.asked != 1 {
		t.Errorf("asked %d times", source.asked)
	}

	var reported []string
	source = &counting{}
	always := NewCached(source, 0, func(err error) { reported = append(reported, err.Error()) })
	for i, err := range []error{nil, errors.New("a"), errors.New("a"), errors.New("b"), nil, errors.New("b")} {
		source.err = err
		var c policy.Conditions
		if err := always.Fill(&c); err != nil || c.Battery != policy.Known(float64(i+1)) {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if strings.Join(reported, " ") != "a b b" {
		t.Errorf("reported: %v", reported)
	}
}

// TestAll checks that All continues after an error.
func TestAll(t *testing.T) {
	var wifi Throughput
	wifi.Set(1)
	var c policy.Conditions
	if err := (All{&counting{err: errors.New("a")}, &wifi}).Fill(&c); err == nil || err.Error() != "a" || !c.Battery.Known || !c.WiFiThroughput.Known {
		t.Errorf("%+v, %v", c, err)
	}
}
