package collector

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"mplab/phonelog/internal/config"
)

// BenchmarkBatch uploads gzip batches of 200 records, as a phone sends them,
// from several phones concurrently. Each is checked, and is on the disk before
// the acknowledgement.
func BenchmarkBatch(b *testing.B) {
	const records = 200
	line := `{"kind":"wifi","t":1763837000.123456,"mono_s":12345.678901,"run":"0123456789abcdef","n":12345,"why":"change","source":"nl80211","interface":"wlan0","enabled":true,"connected":true,"ssid":"eduroam","bssid":"3c:37:12:aa:bb:01","rssi_dbm":-61,"frequency_mhz":5180,"tx_mbps":390,"rx_mbps":433}` + "\n"
	body := packed(strings.Repeat(line, records))
	k := open(b, func(c *config.Collector) { c.Limits.Burst, c.Limits.Concurrent = 1e6, 4096 })
	handler := k.Handler()
	var next atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := request("POST", fmt.Sprintf("/v1/batches/phone-a/%d", next.Add(1)), tokenA, body, "Content-Encoding: gzip")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != 201 {
				b.Errorf("%d %s", w.Code, w.Body)
				return
			}
		}
	})
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/seconds, "batches/s")
	b.ReportMetric(records*float64(b.N)/seconds, "records/s")
}
