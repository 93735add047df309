package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"mplab/linkem/model"
)

// ethernetHeader is the size that interface statistics count in addition to each packet.
const ethernetHeader = 14

// Traffic counts the IP bytes that a link delivered and the packets that it lost, by its full queue or at random.
type Traffic struct {
	UpBytes   int64 `json:"up_bytes"`
	DownBytes int64 `json:"down_bytes"`
	UpLost    int64 `json:"up_lost"`
	DownLost  int64 `json:"down_lost"`
}

// Sub returns the difference to earlier traffic.
func (t Traffic) Sub(earlier Traffic) Traffic {
	return Traffic{
		t.UpBytes - earlier.UpBytes, t.DownBytes - earlier.DownBytes,
		t.UpLost - earlier.UpLost, t.DownLost - earlier.DownLost,
	}
}

// Traffic returns the traffic of the phone's links so far, by interface.
func (r *Rig) Traffic() (map[string]Traffic, error) {
	traffic := map[string]Traffic{}
	if r.shaped {
		all, err := r.control.counters()
		if err != nil {
			return nil, err
		}
		for _, name := range []string{WiFi, LTE} {
			up, down := all[name].Up, all[name].Down
			traffic[name] = Traffic{int64(up.BytesOut), int64(down.BytesOut), lost(up), lost(down)}
		}
		return traffic, nil
	}
	for _, name := range []string{WiFi, LTE} {
		up, errUp := statistic(name, "tx")
		down, errDown := statistic(name, "rx")
		if errUp != nil || errDown != nil {
			return nil, fmt.Errorf("%s: statistics of the interface: %w", name, firstOf(errUp, errDown))
		}
		traffic[name] = Traffic{UpBytes: up, DownBytes: down}
	}
	return traffic, nil
}

func lost(c model.Counters) int64 { return int64(c.DroppedQueue + c.DroppedLoss) }

// statistic returns the IP bytes that an interface in this process's namespace has sent ("tx") or received ("rx"), from
// the fields of /proc/net/dev.
func statistic(name, direction string) (int64, error) {
	data, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		before, after, found := strings.Cut(line, ":")
		fields := strings.Fields(after)
		if !found || strings.TrimSpace(before) != name || len(fields) < 16 {
			continue
		}
		first := map[string]int{"rx": 0, "tx": 8}[direction]
		bytes, err := strconv.ParseInt(fields[first], 10, 64)
		if err != nil {
			return 0, err
		}
		packets, err := strconv.ParseInt(fields[first+1], 10, 64)
		return bytes - ethernetHeader*packets, err
	}
	return 0, fmt.Errorf("no interface %s", name)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
