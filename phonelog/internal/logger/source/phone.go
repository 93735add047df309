package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mplab/phonelog/internal/logger/android"
	"mplab/phonelog/internal/logger/record"
)

// NewCell returns the cellular source. The API level determines the unit of
// some numbers.
func NewCell(sdk int) Source {
	return &first{ways: []way{{"dumpsys telephony.registry", func(ctx context.Context) ([]record.State, error) {
		text, err := run(ctx, "dumpsys", "telephony.registry")
		if err != nil {
			return nil, err
		}
		cells, err := android.Cells(text, sdk)
		return pointers[record.Cell](cells), err
	}}}}
}

// NewLocation returns the location source. It reports positions that other
// programs of the phone requested; it does not request one itself.
func NewLocation() Source {
	return &first{ways: []way{{"dumpsys location", func(ctx context.Context) ([]record.State, error) {
		text, err := run(ctx, "dumpsys", "location")
		if err != nil {
			return nil, err
		}
		locations, err := android.Locations(text)
		return pointers[record.Location](locations), err
	}}}}
}

func pointers[T any, P interface {
	*T
	record.State
}](all []T) []record.State {
	states := make([]record.State, len(all))
	for i := range all {
		states[i] = P(&all[i])
	}
	return states
}

// NewBattery returns the battery source: the kernel's power supplies or, if
// Android hides them, the battery service. "" means the kernel's root.
func NewBattery(root string) Source {
	if root == "" {
		root = "/sys/class/power_supply"
	}
	return &first{ways: []way{
		{"/sys/class/power_supply", func(context.Context) ([]record.State, error) { return readSupplies(root) }},
		{"dumpsys battery", func(ctx context.Context) ([]record.State, error) {
			text, err := run(ctx, "dumpsys", "battery")
			if err != nil {
				return nil, err
			}
			b, err := android.Battery(text)
			b.Source = "dumpsys battery"
			return []record.State{&b}, err
		}},
	}}
}

var errNoBattery = errors.New("there is no battery")

// readSupplies reads sysfs (Documentation/ABI/testing/sysfs-class-power).
func readSupplies(root string) ([]record.State, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	b := record.Battery{Source: "/sys/class/power_supply"}
	found, hidden := false, error(nil)
	feeds := map[string]string{"Mains": "ac", "USB": "usb", "Wireless": "wireless"}
	for _, entry := range entries {
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(root, entry.Name(), name))
			if err != nil {
				if errors.Is(err, os.ErrPermission) {
					hidden = err
				}
				return ""
			}
			return strings.TrimSpace(string(text))
		}
		kind := read("type")
		switch {
		case read("scope") == "Device": // of an accessory, such as a pen or a mouse
		case kind == "Battery" && read("present") != "0" && !found:
			found = true
			b.Level = between(number(read("capacity"), 1), 0, 100)
			b.Temperature = between(number(read("temp"), 10), -100, 200)
			b.Voltage = between(number(read("voltage_now"), 1e6), 0, 1000)
			if status := strings.ReplaceAll(strings.ToLower(read("status")), " ", "_"); slices.Contains([]string{"unknown", "charging", "discharging", "not_charging", "full"}, status) {
				b.Status = status
			}
		case feeds[kind] != "":
			switch online := read("online"); {
			case online != "" && online != "0" && (b.Plugged == "" || b.Plugged == "none"):
				b.Plugged = feeds[kind]
			case online == "0" && b.Plugged == "":
				b.Plugged = "none"
			}
		}
	}
	switch {
	case found && b.Level != nil:
		return []record.State{&b}, nil
	case hidden != nil:
		return nil, hidden
	}
	return nil, errNoBattery
}

// number parses a sysfs number and divides it.
func number(text string, by float64) *float64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	v := float64(n) / by
	return &v
}

func between(v *float64, least, most float64) *float64 {
	if v == nil || *v < least || *v > most {
		return nil
	}
	return v
}
