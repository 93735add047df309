package ifaces

import (
	"net/netip"
	"reflect"
	"testing"
)

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestDiff(t *testing.T) {
	wlan := Interface{Name: "wlan0", Index: 2, Addrs: addrs("10.0.0.2"), DefaultIPv4: true}
	rmnet := Interface{Name: "rmnet0", Index: 3, Addrs: addrs("10.1.0.2")}
	moved, cut, anew, renamed, both := wlan, wlan, wlan, wlan, wlan
	moved.Addrs = addrs("10.0.0.3")
	cut.DefaultIPv4 = false
	anew.Index = 9
	renamed.Name = "wlan1"
	both.Addrs, both.DefaultIPv6 = addrs("10.0.0.2", "fd00::2"), true
	for name, c := range map[string]struct {
		before, after []Interface
		want          []Event
	}{
		"nothing":         {[]Interface{wlan, rmnet}, []Interface{wlan, rmnet}, nil},
		"another order":   {[]Interface{wlan, rmnet}, []Interface{rmnet, wlan}, nil},
		"up":              {[]Interface{wlan}, []Interface{wlan, rmnet}, []Event{{Up, rmnet}}},
		"down":            {[]Interface{wlan, rmnet}, []Interface{rmnet}, []Event{{Down, wlan}}},
		"down and up":     {[]Interface{wlan}, []Interface{rmnet}, []Event{{Down, wlan}, {Up, rmnet}}},
		"made anew":       {[]Interface{wlan}, []Interface{anew}, []Event{{Down, wlan}, {Up, anew}}},
		"renamed":         {[]Interface{wlan}, []Interface{renamed}, []Event{{Down, wlan}, {Up, renamed}}},
		"other address":   {[]Interface{wlan}, []Interface{moved}, []Event{{Addresses, moved}}},
		"route gone":      {[]Interface{wlan}, []Interface{cut}, []Event{{Routes, cut}}},
		"route there":     {[]Interface{cut}, []Interface{wlan}, []Event{{Routes, wlan}}},
		"address, routes": {[]Interface{wlan}, []Interface{both}, []Event{{Addresses, both}, {Routes, both}}},
	} {
		if got := Diff(c.before, c.after); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if Up.String() != "up" || Routes.String() != "routes" {
		t.Errorf("%v, %v", Up, Routes)
	}
}
