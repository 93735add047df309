package record_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mplab/docs/schema"
	"mplab/phonelog/internal/collector/lines"
	. "mplab/phonelog/internal/logger/record"
)

func ptr[T any](v T) *T { return &v }

// full has one record of each kind, with every field set.
func full() map[string]Record {
	return map[string]Record{
		KindStart: &Start{Device: "phone-1", Version: "0.1.0", Boot: "b", Recorded: []string{"network", "wifi", "cell", "cell-id", "battery", "location"},
			Hashed: true, Android: "16", SDK: 36, Model: "m", Build: "b"},
		KindStop:      &Stop{Reason: "SIGTERM"},
		KindHeartbeat: &Heartbeat{Stored: 1, Unsent: 2, Refused: 3, Dropped: Dropped{4, 5}, Lost: 6, Sources: map[string]string{"wifi": "nl80211"}},
		KindClock:     &Clock{Step: -1.5},
		KindProblem:   &Problem{Source: "wifi", Text: "t"},
		KindMyIP:      &MyIP{Interface: "wlan0", Address: "192.0.2.1", Connect: ptr(1.5), RTT: ptr(2.5), Error: "e"},
		KindInterface: &Interface{Name: "wlan0", Index: 3, Present: true, State: "up", Up: ptr(true), Running: ptr(true), MTU: 1500,
			Addresses: []string{"10.0.0.2/24"}, Usable: true, DefaultIPv4: true, DefaultIPv6: true},
		KindRoutes: &Routes{Routes: []Route{{4, 254, "wlan0", "10.0.0.1", 600, "unicast"}}},
		KindWiFi: &WiFi{Source: "nl80211", Interface: "wlan0", Enabled: ptr(true), Connected: true, State: "COMPLETED", SSID: "s", SSIDHash: "0123456789abcdef",
			BSSID: "02:11:22:33:44:55", BSSIDHash: "0123456789abcdef", RSSI: ptr(-50.), Frequency: 5180, Link: ptr(1.), TX: ptr(1.), RX: ptr(1.), Standard: "11ax"},
		KindCell: &Cell{Slot: 1, Service: "IN_SERVICE", DataService: "IN_SERVICE", Type: "LTE", Override: "NR_NSA", NRState: "CONNECTED", Operator: "20601",
			OperatorName: "o", Roaming: ptr(false), DataState: "CONNECTED", Aggregation: ptr(true), SignalOf: "LTE", Level: ptr(0), RSRP: ptr(-90.), RSRQ: ptr(-9.),
			SINR: ptr(10.), RSSI: ptr(-60.), RSCP: ptr(-80.), CellID: ptr(int64(0)), Area: ptr(1), PCI: ptr(2), ARFCN: ptr(3), Bands: []int{20}},
		KindBattery:  &Battery{Source: "dumpsys battery", Level: ptr(50.), Status: "full", Plugged: "ac", Temperature: ptr(30.), Voltage: ptr(4.)},
		KindLocation: &Location{Provider: "gps", Latitude: 50, Longitude: 4, Accuracy: ptr(5.), Altitude: ptr(100.), Speed: ptr(1.), Bearing: ptr(0.), Fix: ptr(9.)},
	}
}

func line(t *testing.T, r Record) []byte {
	t.Helper()
	why := ""
	if _, state := r.(State); state {
		why = Change
	}
	l, err := Encode(r, Now(), "0123456789abcdef", 7, why)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSchemaHasTheSameFields checks that the schema and the records have the same
// kinds, fields and optional fields.
func TestSchemaHasTheSameFields(t *testing.T) {
	var document struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		} `json:"$defs"`
		Properties struct {
			Kind struct{ Enum []string }
		}
		AllOf []struct{ Then map[string]string }
	}
	if err := json.Unmarshal(schema.PhoneLog, &document); err != nil {
		t.Fatal(err)
	}
	records := full()
	if len(document.Defs) != len(records) || len(document.Properties.Kind.Enum) != len(records) || len(document.AllOf) != len(records) {
		t.Errorf("%d kinds, of which the schema defines %d, names %d, refers to %d", len(records), len(document.Defs), len(document.Properties.Kind.Enum), len(document.AllOf))
	}
	for kind, r := range records {
		def, known := document.Defs[kind]
		if !known || !slices.Contains(document.Properties.Kind.Enum, kind) {
			t.Errorf("%s is not in the schema", kind)
			continue
		}
		optional := map[string]bool{}
		collect(reflect.TypeOf(r).Elem(), optional)
		if _, state := r.(State); state {
			optional["why"] = false
		} else {
			delete(optional, "why")
		}
		for name := range def.Properties {
			if _, there := optional[name]; !there {
				t.Errorf("%s: %s is in the schema alone", kind, name)
			}
		}
		for name, may := range optional {
			if _, there := def.Properties[name]; !there {
				t.Errorf("%s: %s is not in the schema", kind, name)
			}
			if slices.Contains(def.Required, name) == may {
				t.Errorf("%s: %s: required %v", kind, name, !may)
			}
		}
	}
}

// collect lists the fields of a record, and whether they are optional.
func collect(of reflect.Type, optional map[string]bool) {
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous {
			collect(field.Type, optional)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		optional[name] = options == "omitempty"
	}
}

// TestSchemaHasTheSameTypes checks that written records are valid in the schema, and
// that a value of another type in any field is invalid.
func TestSchemaHasTheSameTypes(t *testing.T) {
	checker := lines.New(0)
	for kind, r := range full() {
		good := line(t, r)
		if bad := checker.Check(good); bad != nil {
			t.Errorf("%s: %v", good, bad)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(good, &fields); err != nil {
			t.Fatal(err)
		}
		for name := range fields {
			for _, wrong := range []string{`{"x":{}}`, "null"} {
				other := map[string]json.RawMessage{}
				for k, v := range fields {
					other[k] = v
				}
				other[name] = json.RawMessage(wrong)
				text, _ := json.Marshal(other)
				if checker.Check(append(text, '\n')) == nil {
					t.Errorf("%s: %s may be %s", kind, name, wrong)
				}
			}
		}
		fields["more"] = json.RawMessage("1")
		text, _ := json.Marshal(fields)
		if checker.Check(append(text, '\n')) == nil {
			t.Errorf("%s may have more fields", kind)
		}
	}
}

func TestWhatIsAChange(t *testing.T) {
	steps := Steps{SignalDB: 3, TemperatureC: 1, LocationM: 10}
	wifi := func(f func(*WiFi)) State { w := full()[KindWiFi].(*WiFi); f(w); return w }
	cell := func(f func(*Cell)) State { c := full()[KindCell].(*Cell); f(c); return c }
	battery := func(f func(*Battery)) State { b := full()[KindBattery].(*Battery); f(b); return b }
	place := func(f func(*Location)) State { l := full()[KindLocation].(*Location); f(l); return l }
	for name, c := range map[string]struct {
		now, before State
		differs     bool
	}{
		"the same":             {wifi(func(*WiFi) {}), wifi(func(w *WiFi) { w.N = 1 }), false},
		"signal, less":         {wifi(func(w *WiFi) { *w.RSSI = -52 }), wifi(func(*WiFi) {}), false},
		"signal, a step":       {wifi(func(w *WiFi) { *w.RSSI = -53 }), wifi(func(*WiFi) {}), true},
		"signal lost":          {wifi(func(w *WiFi) { w.RSSI = nil }), wifi(func(*WiFi) {}), true},
		"rates":                {wifi(func(w *WiFi) { w.TX = nil; *w.RX = 9 }), wifi(func(*WiFi) {}), false},
		"another access point": {wifi(func(w *WiFi) { w.BSSID = "02:11:22:33:44:56" }), wifi(func(*WiFi) {}), true},
		"enabled is a pointer": {wifi(func(w *WiFi) { w.Enabled = ptr(false) }), wifi(func(*WiFi) {}), true},
		"cell":                 {cell(func(c *Cell) { *c.CellID = 8 }), cell(func(*Cell) {}), true},
		"cell, less":           {cell(func(c *Cell) { *c.RSRP = -91 }), cell(func(*Cell) {}), false},
		"bands":                {cell(func(c *Cell) { c.Bands = []int{3} }), cell(func(*Cell) {}), true},
		"voltage":              {battery(func(b *Battery) { *b.Voltage = 3 }), battery(func(*Battery) {}), false},
		"warmer":               {battery(func(b *Battery) { *b.Temperature = 31 }), battery(func(*Battery) {}), true},
		"unplugged":            {battery(func(b *Battery) { b.Plugged = "none" }), battery(func(*Battery) {}), true},
		"moved 11 m, same fix": {place(func(l *Location) { l.Latitude += 1e-4 }), place(func(*Location) {}), false},
		"moved 11 m":           {place(func(l *Location) { l.Latitude += 1e-4; *l.Fix = 10 }), place(func(*Location) {}), true},
		"moved 1 m":            {place(func(l *Location) { l.Latitude += 1e-5; *l.Fix = 10 }), place(func(*Location) {}), false},
		"another address":      {&Interface{Name: "a", Addresses: []string{"10.0.0.1/8"}}, &Interface{Name: "a", Addresses: []string{}}, true},
		"another route":        {&Routes{Routes: []Route{{Family: 4}}}, &Routes{}, true},
	} {
		if got := c.now.Differs(c.before, steps); got != c.differs {
			t.Errorf("%s: %v", name, got)
		}
	}
	zero := Steps{}
	if !wifi(func(w *WiFi) { *w.RSSI = -51 }).Differs(wifi(func(*WiFi) {}), zero) || wifi(func(*WiFi) {}).Differs(wifi(func(*WiFi) {}), zero) {
		t.Error("a step of 0 is any change, and no other")
	}
}

func TestKeysAndCharging(t *testing.T) {
	keys := map[string]bool{}
	for _, r := range full() {
		if s, ok := r.(State); ok {
			keys[s.Key()] = true
			if c := s.Copy(); !reflect.DeepEqual(c, s) || c == s {
				t.Errorf("%T is not copied", s)
			}
		}
	}
	if len(keys) != 6 {
		t.Errorf("%v", keys)
	}
	for _, c := range []struct {
		b    Battery
		want *bool
	}{{Battery{}, nil}, {Battery{Status: "unknown"}, nil}, {Battery{Plugged: "usb", Status: "not_charging"}, ptr(true)},
		{Battery{Plugged: "none", Status: "full"}, ptr(false)}, {Battery{Status: "charging"}, ptr(true)}, {Battery{Status: "discharging"}, ptr(false)}} {
		if got := c.b.Charging(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v", c.b, got)
		}
	}
}

func TestBothClocks(t *testing.T) {
	a := Now()
	time.Sleep(2 * time.Millisecond)
	b := Now()
	if a.Mono <= 0 || b.Mono <= a.Mono || !b.Wall.After(a.Wall) {
		t.Errorf("%+v, then %+v", a, b)
	}
	if step := (Stamp{b.Wall.Add(time.Hour), b.Mono}).Offset() - b.Offset(); step != time.Hour {
		t.Errorf("a clock that was set by an hour: %v", step)
	}
}
