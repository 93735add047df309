package links

import (
	"math"
	"slices"
)

// Minimum overhead of a transfer.
const (
	segment     = 1448.0 // payload of a full TCP segment with timestamps
	packet      = 1500.0 // the IP packet around it
	headers     = packet - segment
	bitsPerByte = 8.0
)

// course describes the capacity of one path: 0 before start, then rate bytes per ms, 0 after end. Times are in ms.
type course struct{ start, rate, end float64 }

// Limits computes the physical limits on the links of a profile, in ms. No method that sends the request with the first
// packet (0-RTT) and fully uses both links can be faster. The limits hold for lossless links.
type Limits struct {
	Profile
	Request int // size of a request, and of the answer to an upload, in bytes
}

// Download returns the minimum time for a file of size bytes. The request leaves immediately on the path on which it
// arrives first. The proxy connects to the origin and forwards the request, which takes two round trips between them.
// Then both links deliver at their rate, and every segment has its headers.
func (l Limits) Download(size int) float64 {
	return deliver(l.down(math.Inf(1)), onTheWire(size))
}

// DownloadDying returns the value of Download if WiFi delivers nothing from diesMs on.
func (l Limits) DownloadDying(size int, diesMs float64) float64 {
	return deliver(l.down(diesMs), onTheWire(size))
}

// DownloadLTE returns the value of Download with LTE only.
func (l Limits) DownloadLTE(size int) float64 { return l.DownloadDying(size, 0) }

// Upload returns the minimum time until the origin's answer to an upload of size bytes arrives. Request and data leave
// immediately on both links. The origin receives nothing before the proxy has connected to it.
func (l Limits) Upload(size int) float64 { return l.upload(size, math.Inf(1)) }

// UploadDying returns the value of Upload if WiFi delivers nothing from diesMs on.
func (l Limits) UploadDying(size int, diesMs float64) float64 { return l.upload(size, diesMs) }

// UploadLTE returns the value of Upload with LTE only.
func (l Limits) UploadLTE(size int) float64 { return l.upload(size, 0) }

// Bundle returns the minimum time for count files of size bytes each, ways at a time: that of its rounds or that of its
// bytes.
func Bundle(file func(size int) float64, count, ways, size int) float64 {
	rounds := (count + ways - 1) / ways
	return max(float64(rounds)*file(size), file(count*size))
}

// down returns the downlink capacity of both links; WiFi ends at wifiEnd.
func (l Limits) down(wifiEnd float64) []course {
	alive := l.links(wifiEnd > 0)
	request := math.Inf(1) // arrival of the request at the proxy
	for _, link := range alive {
		request = min(request, link.RTTMs/2+(float64(l.Request)+headers)/perMs(link.UpKbps))
	}
	first := request + 2*ServerRTTMs
	var courses []course
	for i, link := range alive {
		courses = append(courses, course{start: first + link.RTTMs/2, rate: perMs(link.DownKbps), end: end(i, alive, wifiEnd)})
	}
	return courses
}

func (l Limits) upload(size int, wifiEnd float64) float64 {
	alive := l.links(wifiEnd > 0)
	bytes := onTheWire(size + l.Request)
	first := math.Inf(1) // the proxy has a packet and can connect to the origin
	var courses []course
	for i, link := range alive {
		courses = append(courses, course{start: link.RTTMs / 2, rate: perMs(link.UpKbps), end: end(i, alive, wifiEnd)})
		first = min(first, link.RTTMs/2+min(packet, bytes)/perMs(link.UpKbps))
	}
	answered := max(deliver(courses, bytes), first+ServerRTTMs) + ServerRTTMs // the answer is at the proxy
	back := math.Inf(1)
	for i, link := range alive {
		at := answered + link.RTTMs/2 + (float64(l.Request)+headers)/perMs(link.DownKbps)
		if at <= end(i, alive, wifiEnd) {
			back = min(back, at)
		}
	}
	return back
}

// end returns the end time of a link of links().
func end(i int, alive []Link, wifiEnd float64) float64 {
	if i == 0 && len(alive) == 2 {
		return wifiEnd
	}
	return math.Inf(1)
}

// links returns LTE and, if it is alive, WiFi.
func (l Limits) links(wifi bool) []Link {
	if wifi {
		return []Link{l.WiFi, l.LTE}
	}
	return []Link{l.LTE}
}

// deliver returns the time when all paths together have delivered the bytes.
func deliver(courses []course, bytes float64) float64 {
	var times []float64 // start and end times of the paths
	for _, c := range courses {
		times = append(times, c.start, c.end)
	}
	slices.Sort(times)
	now, missing := 0.0, bytes
	for _, next := range append(times, math.Inf(1)) {
		if next <= now {
			continue
		}
		rate := 0.0
		for _, c := range courses {
			if c.start <= now && now < c.end {
				rate += c.rate
			}
		}
		if needed := missing / rate; rate > 0 && now+needed <= next {
			return now + needed
		}
		if rate > 0 {
			missing -= rate * (next - now)
		}
		now = next
	}
	return math.Inf(1)
}

func onTheWire(size int) float64 { return float64(size) * packet / segment }

func perMs(kbps float64) float64 { return kbps / bitsPerByte }
