package logger

import (
	"path"
	"slices"

	"mplab/internal/ifaces"
	"mplab/phonelog/internal/logger/record"
	"mplab/phonelog/internal/logger/upload"
)

// conditions returns the upload conditions, from the latest states.
func (l *Logger) conditions() upload.Conditions {
	return ConditionsOf(l.set.Snapshot(), l.config.Upload.WiFiInterfaces, l.recorder.now(record.KindWiFi), l.recorder.now(record.KindBattery))
}

// ConditionsOf combines the upload conditions. WiFi is the first usable
// interface that matches a pattern, unless the WiFi state is "not connected".
func ConditionsOf(usable []ifaces.Interface, patterns []string, wifi, battery record.State) (c upload.Conditions) {
	if w, known := wifi.(*record.WiFi); !known || w.Connected {
		for _, pattern := range patterns {
			i := slices.IndexFunc(usable, func(i ifaces.Interface) bool {
				matches, _ := path.Match(pattern, i.Name)
				return matches
			})
			if i >= 0 {
				c.WiFi = usable[i].Name
				break
			}
		}
	}
	if b, known := battery.(*record.Battery); known {
		c.Charging, c.Level = b.Charging(), b.Level
	}
	return c
}
