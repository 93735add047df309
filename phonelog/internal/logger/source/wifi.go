package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mdlayher/wifi"

	"mplab/phonelog/internal/logger/android"
	"mplab/phonelog/internal/logger/record"
)

// netlinkTimeout bounds the wait for nl80211.
const netlinkTimeout = 2 * time.Second

// NewWiFi returns the WiFi source. It asks the kernel first, because that is
// cheap and its numbers have fixed meanings.
func NewWiFi() Source {
	return &first{ways: []way{
		{"nl80211", readNL80211},
		{"cmd wifi status", func(ctx context.Context) ([]record.State, error) { return fromText(ctx, "cmd", "wifi", "status") }},
		{"dumpsys wifi", func(ctx context.Context) ([]record.State, error) { return fromText(ctx, "dumpsys", "wifi") }},
		{"/proc/net/wireless", func(context.Context) ([]record.State, error) { return readWireless("/proc/net/wireless") }},
	}}
}

func fromText(ctx context.Context, name string, args ...string) ([]record.State, error) {
	text, err := run(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	w, err := android.WiFi(text)
	if err != nil {
		return nil, err
	}
	w.Source = strings.Join(append([]string{name}, args...), " ")
	return []record.State{&w}, nil
}

// readNL80211 asks the kernel. Without a connected station interface it returns
// errPartly, because Android may know whether WiFi is enabled.
func readNL80211(context.Context) ([]record.State, error) {
	client, err := wifi.New()
	if err != nil {
		return nil, err
	}
	defer client.Close() //nolint:errcheck // a socket
	if err := client.SetDeadline(time.Now().Add(netlinkTimeout)); err != nil {
		return nil, err
	}
	interfaces, err := client.Interfaces()
	if err != nil {
		return nil, err
	}
	unconnected := record.WiFi{Source: "nl80211"}
	for _, i := range interfaces {
		if i.Type != wifi.InterfaceTypeStation || i.Name == "" {
			continue
		}
		bss, err := client.BSS(i)
		if errors.Is(err, fs.ErrNotExist) {
			unconnected.Interface = i.Name
			continue
		}
		if err != nil {
			return nil, err
		}
		stations, err := client.StationInfo(i)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		w := describe(i, bss, stations)
		return []record.State{&w}, nil
	}
	return []record.State{&unconnected}, errPartly
}

// describe converts a connection from nl80211 into a record.
func describe(i *wifi.Interface, bss *wifi.BSS, stations []*wifi.StationInfo) record.WiFi {
	on := true
	w := record.WiFi{Source: "nl80211", Interface: i.Name, Enabled: &on, Connected: true, Frequency: bss.Frequency,
		SSID: strings.ToValidUTF8(bss.SSID, "�"), BSSID: strings.ToLower(bss.BSSID.String())}
	if len(bss.BSSID) != 6 {
		w.BSSID = ""
	}
	for _, s := range stations {
		if s.HardwareAddr.String() != bss.BSSID.String() && len(stations) > 1 {
			continue
		}
		if s.Signal < 0 {
			dbm := float64(s.Signal)
			w.RSSI = &dbm
		}
		w.TX, w.RX = mbps(s.TransmitBitrate), mbps(s.ReceiveBitrate)
		break
	}
	return w
}

func mbps(bits int) *float64 {
	if bits <= 0 {
		return nil
	}
	rate := float64(bits) / 1e6
	return &rate
}

// readWireless reads /proc/net/wireless (wireless extensions), which only
// contains the signal.
func readWireless(path string) ([]record.State, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w, err := parseWireless(string(data))
	return []record.State{&w}, err
}

func parseWireless(text string) (record.WiFi, error) {
	w := record.WiFi{Source: "/proc/net/wireless"}
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !found || len(fields) < 4 || name == "" || len(name) > 15 {
			continue
		}
		link, linkErr := strconv.ParseFloat(strings.TrimSuffix(fields[1], "."), 64)
		level, levelErr := strconv.ParseFloat(strings.TrimSuffix(fields[2], "."), 64)
		if linkErr != nil || levelErr != nil {
			return w, fmt.Errorf("unexpected line %.80q", strings.TrimSpace(line))
		}
		w.Interface, w.Connected = strings.ToValidUTF8(name, "�"), link > 0
		if w.Connected && level < 0 && level >= -200 {
			w.RSSI = &level
		}
		return w, nil
	}
	return w, errors.New("no interface is in it")
}
