package android

import (
	"regexp"
	"strings"

	"mplab/phonelog/internal/logger/record"
)

// enabled matches the line with the WiFi state in `cmd wifi status` and
// `dumpsys wifi`.
var enabled = regexp.MustCompile(`(?m)^\s*Wi-?[Ff]i is (enabled|disabled|enabling|disabling)\b`)

// wifiInfo matches the line with WifiInfo: after "WifiInfo: " in `cmd wifi
// status`, "mWifiInfo " in `dumpsys wifi`.
var wifiInfo = regexp.MustCompile(`(?m)^\s*m?WifiInfo:?\s+(SSID:.*)$`)

// An SSID can contain any text, even text that looks like the next field. It
// ends before the last BSSID that is followed by a comma.
var (
	ssid     = regexp.MustCompile(`^SSID: (.*), BSSID: (<none>|null|any|[0-9A-Fa-f:]{17}),`)
	instance = regexp.MustCompile(`\biface=([A-Za-z0-9_.-]{1,15})`)
)

// WiFi parses `cmd wifi status` (Android 11 and later) or `dumpsys wifi`. It
// returns an error if the text does not contain the state of WiFi.
func WiFi(text string) (record.WiFi, error) {
	var w record.WiFi
	if err := Refused(text); err != nil {
		return w, err
	}
	on := enabled.FindStringSubmatch(text)
	if on != nil {
		is := on[1] == "enabled" || on[1] == "disabling"
		w.Enabled = &is
	}
	info := wifiInfo.FindStringSubmatch(text)
	if on == nil && info == nil {
		return w, unread("state of WiFi", text)
	}
	// If there are several clients (Android 12 and later), the first is the
	// primary one.
	if at := instance.FindStringSubmatch(text); at != nil {
		w.Interface = at[1]
	}
	if info != nil && (w.Enabled == nil || *w.Enabled) {
		readInfo(&w, info[1])
	}
	return w, nil
}

// readInfo parses WifiInfo.toString(): "SSID: "x", BSSID: …, MAC: …, …".
func readInfo(w *record.WiFi, line string) {
	rest := line
	if m := ssid.FindStringSubmatch(line); m != nil {
		if bssid := strings.ToLower(m[2]); len(bssid) == 17 && bssidForm.MatchString(bssid) && bssid != "00:00:00:00:00:00" && bssid != "02:00:00:00:00:00" {
			w.BSSID = bssid
		}
		w.SSID = networkName(m[1])
		rest = line[len(m[0]):]
	}
	values := make(map[string]string)
	for field := range strings.SplitSeq(rest, ", ") {
		key, value, found := strings.Cut(field, ": ")
		if _, known := values[key]; found && !known {
			values[key] = strings.TrimSpace(value)
		}
	}
	w.State = name(values["Supplicant state"])
	w.Connected = w.State == "COMPLETED" || w.State == "" && w.BSSID != ""
	if !w.Connected {
		w.SSID, w.BSSID = "", ""
		return
	}
	w.RSSI = decimal(integer(values["RSSI"]), -126, 20) // -127: WifiInfo.INVALID_RSSI
	if f := within(integer(strings.TrimSuffix(values["Frequency"], "MHz")), 1, 100000); f != nil {
		w.Frequency = *f
	}
	for key, to := range map[string]**float64{"Link speed": &w.Link, "Tx Link speed": &w.TX, "Rx Link speed": &w.RX} {
		*to = decimal(integer(strings.TrimSuffix(values[key], "Mbps")), 0, 1000000) // -1: unknown
	}
	w.Standard = standard(values["Wi-Fi standard"])
}

var bssidForm = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

// networkName returns the SSID in the form of WifiInfo: quoted since Android
// 11, bare hexadecimal digits if it is not UTF-8.
func networkName(text string) string {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	} else if text == "<unknown ssid>" || text == "<none>" || text == "0x" {
		return ""
	}
	return clip(text, 128)
}

// standard returns the name of ScanResult.WIFI_STANDARD_*, which some releases
// print as a number.
func standard(text string) string {
	if known, ok := map[string]string{"0": "", "1": "legacy", "4": "11n", "5": "11ac", "6": "11ax", "7": "11ad", "8": "11be", "unknown": ""}[text]; ok {
		return known
	}
	return name(text)
}
