package record

import (
	"math"
	"reflect"
	"strconv"
)

// State is a record of a current state. It is written when it differs from the
// last written one.
type State interface {
	Record
	// Key identifies the object among all states.
	Key() string
	// Differs reports whether this state must be written after an earlier one
	// with the same key.
	Differs(earlier State, steps Steps) bool
	// Copy returns a copy that can be written again.
	Copy() State
}

// Steps are the minimum changes of values that cause a record.
type Steps struct {
	SignalDB     float64 // of WiFi and cellular signals
	TemperatureC float64
	LocationM    float64
}

// Interface is a network interface.
type Interface struct {
	Head
	Name        string   `json:"interface"`
	Index       int      `json:"index,omitempty"`
	Present     bool     `json:"present"` // false: it was removed
	State       string   `json:"state,omitempty"`
	Up          *bool    `json:"up,omitempty"`
	Running     *bool    `json:"running,omitempty"`
	MTU         int      `json:"mtu,omitempty"`
	Addresses   []string `json:"addresses"`
	Usable      bool     `json:"usable"` // up, running, with an address that other hosts can answer to
	DefaultIPv4 bool     `json:"default_ipv4"`
	DefaultIPv6 bool     `json:"default_ipv6"`
}

// Routes are the default routes of all tables.
type Routes struct {
	Head
	Routes []Route `json:"routes"`
}

// Route is a default route.
type Route struct {
	Family    int    `json:"family"` // 4 or 6
	Table     int    `json:"table"`
	Interface string `json:"interface,omitempty"`
	Gateway   string `json:"gateway,omitempty"`
	Metric    int    `json:"metric"`
	Type      string `json:"type"`
}

// WiFi is the connection to an access point.
type WiFi struct {
	Head
	Source    string   `json:"source"`
	Interface string   `json:"interface,omitempty"`
	Enabled   *bool    `json:"enabled,omitempty"`
	Connected bool     `json:"connected"`
	State     string   `json:"state,omitempty"` // of the supplicant
	SSID      string   `json:"ssid,omitempty"`
	SSIDHash  string   `json:"ssid_hash,omitempty"`
	BSSID     string   `json:"bssid,omitempty"`
	BSSIDHash string   `json:"bssid_hash,omitempty"`
	RSSI      *float64 `json:"rssi_dbm,omitempty"`
	Frequency int      `json:"frequency_mhz,omitempty"`
	Link      *float64 `json:"link_mbps,omitempty"`
	TX        *float64 `json:"tx_mbps,omitempty"`
	RX        *float64 `json:"rx_mbps,omitempty"`
	Standard  string   `json:"standard,omitempty"`
}

// Cell is the cellular network of one SIM slot.
type Cell struct {
	Head
	Slot         int      `json:"slot"`
	Service      string   `json:"service,omitempty"`      // for voice
	DataService  string   `json:"data_service,omitempty"` // for packet data
	Type         string   `json:"type,omitempty"`         // LTE, NR, …
	Override     string   `json:"override,omitempty"`     // shown in the status bar instead: NR_NSA, LTE_CA, …
	NRState      string   `json:"nr_state,omitempty"`
	Operator     string   `json:"operator,omitempty"` // MCC and MNC
	OperatorName string   `json:"operator_name,omitempty"`
	Roaming      *bool    `json:"roaming,omitempty"`
	DataState    string   `json:"data_state,omitempty"`
	Aggregation  *bool    `json:"carrier_aggregation,omitempty"`
	SignalOf     string   `json:"signal_of,omitempty"` // technology of the signal values
	Level        *int     `json:"level,omitempty"`     // 0 to 4
	RSRP         *float64 `json:"rsrp_dbm,omitempty"`
	RSRQ         *float64 `json:"rsrq_db,omitempty"`
	SINR         *float64 `json:"sinr_db,omitempty"`
	RSSI         *float64 `json:"rssi_dbm,omitempty"`
	RSCP         *float64 `json:"rscp_dbm,omitempty"`
	CellID       *int64   `json:"cell_id,omitempty"`
	Area         *int     `json:"area,omitempty"` // TAC or LAC
	PCI          *int     `json:"pci,omitempty"`  // PSC of UMTS
	ARFCN        *int     `json:"arfcn,omitempty"`
	Bands        []int    `json:"bands,omitempty"`
}

// Battery is the charge state and the power source.
type Battery struct {
	Head
	Source      string   `json:"source"`
	Level       *float64 `json:"level_percent,omitempty"`
	Status      string   `json:"status,omitempty"`
	Plugged     string   `json:"plugged,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"`
	Voltage     *float64 `json:"voltage_v,omitempty"`
}

// Charging reports whether the phone has a power source; nil: unknown.
func (b *Battery) Charging() *bool {
	var fed bool
	switch {
	case b.Plugged != "":
		fed = b.Plugged != "none"
	case b.Status != "" && b.Status != "unknown":
		fed = b.Status == "charging" || b.Status == "full"
	default:
		return nil
	}
	return &fed
}

// Location is the last position of one provider.
type Location struct {
	Head
	Provider  string   `json:"provider"`
	Latitude  float64  `json:"latitude"`
	Longitude float64  `json:"longitude"`
	Accuracy  *float64 `json:"accuracy_m,omitempty"`
	Altitude  *float64 `json:"altitude_m,omitempty"`
	Speed     *float64 `json:"speed_mps,omitempty"`
	Bearing   *float64 `json:"bearing_deg,omitempty"`
	Fix       *float64 `json:"fix_mono_s,omitempty"` // time of the position, as mono_s
}

func (*Interface) kind() string { return KindInterface }
func (*Routes) kind() string    { return KindRoutes }
func (*WiFi) kind() string      { return KindWiFi }
func (*Cell) kind() string      { return KindCell }
func (*Battery) kind() string   { return KindBattery }
func (*Location) kind() string  { return KindLocation }

// Key implements State.
func (i *Interface) Key() string { return KindInterface + " " + i.Name }

// Key implements State.
func (*Routes) Key() string { return KindRoutes }

// Key implements State.
func (*WiFi) Key() string { return KindWiFi }

// Key implements State.
func (c *Cell) Key() string { return KindCell + " " + strconv.Itoa(c.Slot) }

// Key implements State.
func (*Battery) Key() string { return KindBattery }

// Key implements State.
func (l *Location) Key() string { return KindLocation + " " + l.Provider }

// Copy implements State.
func (i *Interface) Copy() State { c := *i; return &c }

// Copy implements State.
func (r *Routes) Copy() State { c := *r; return &c }

// Copy implements State.
func (w *WiFi) Copy() State { c := *w; return &c }

// Copy implements State.
func (c *Cell) Copy() State { o := *c; return &o }

// Copy implements State.
func (b *Battery) Copy() State { c := *b; return &c }

// Copy implements State.
func (l *Location) Copy() State { c := *l; return &c }

// Differs implements State.
func (i *Interface) Differs(earlier State, _ Steps) bool {
	now, before := *i, *earlier.(*Interface)
	now.Head, before.Head = Head{}, Head{}
	return !reflect.DeepEqual(now, before)
}

// Differs implements State.
func (r *Routes) Differs(earlier State, _ Steps) bool {
	return !reflect.DeepEqual(r.Routes, earlier.(*Routes).Routes)
}

// Differs implements State. A change of rates alone is not recorded, because
// rates follow the traffic.
func (w *WiFi) Differs(earlier State, steps Steps) bool {
	now, before := *w, *earlier.(*WiFi)
	if moved(before.RSSI, now.RSSI, steps.SignalDB) {
		return true
	}
	for _, s := range []*WiFi{&now, &before} {
		s.Head, s.RSSI, s.Link, s.TX, s.RX = Head{}, nil, nil, nil, nil
	}
	return !reflect.DeepEqual(now, before)
}

// Differs implements State.
func (c *Cell) Differs(earlier State, steps Steps) bool {
	now, before := *c, *earlier.(*Cell)
	for _, v := range [][2]*float64{{before.RSRP, now.RSRP}, {before.RSRQ, now.RSRQ}, {before.SINR, now.SINR}, {before.RSSI, now.RSSI}, {before.RSCP, now.RSCP}} {
		if moved(v[0], v[1], steps.SignalDB) {
			return true
		}
	}
	for _, s := range []*Cell{&now, &before} {
		s.Head, s.RSRP, s.RSRQ, s.SINR, s.RSSI, s.RSCP = Head{}, nil, nil, nil, nil, nil
	}
	return !reflect.DeepEqual(now, before)
}

// Differs implements State. A change of the voltage alone is not recorded.
func (b *Battery) Differs(earlier State, steps Steps) bool {
	now, before := *b, *earlier.(*Battery)
	if moved(before.Temperature, now.Temperature, steps.TemperatureC) {
		return true
	}
	for _, s := range []*Battery{&now, &before} {
		s.Head, s.Temperature, s.Voltage = Head{}, nil, nil
	}
	return !reflect.DeepEqual(now, before)
}

// Differs implements State. A new fix at the same place is not recorded.
func (l *Location) Differs(earlier State, steps Steps) bool {
	before := earlier.(*Location)
	if l.Fix != nil && before.Fix != nil && *l.Fix == *before.Fix {
		return false
	}
	return apart(*before, *l) >= steps.LocationM || moved(before.Accuracy, l.Accuracy, math.Max(steps.LocationM, 1))
}

// moved reports whether a value appeared, disappeared, or changed by at least
// step. A step of 0 means any change.
func moved(before, now *float64, step float64) bool {
	if before == nil || now == nil {
		return before != now
	}
	return *before != *now && math.Abs(*now-*before) >= step
}

// apart returns the great-circle distance of two places in m.
func apart(a, b Location) float64 {
	const radius, degree = 6371e3, math.Pi / 180
	lat1, lat2 := a.Latitude*degree, b.Latitude*degree
	dLat, dLon := lat2-lat1, (b.Longitude-a.Longitude)*degree
	h := math.Pow(math.Sin(dLat/2), 2) + math.Cos(lat1)*math.Cos(lat2)*math.Pow(math.Sin(dLon/2), 2)
	return 2 * radius * math.Asin(math.Sqrt(math.Min(1, h)))
}
