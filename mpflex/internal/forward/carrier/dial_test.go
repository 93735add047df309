package carrier

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"mplab/internal/netx"
)

// TestDevicesWithoutNetwork checks that a device that does not exist is skipped, and
// that the error reports it if no other exists.
func TestDevicesWithoutNetwork(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	d := &Dialer{Proxy: netip.MustParseAddrPort(listener.Addr().String()), Devices: []string{"nosuch0", "lo"}}
	for range 3 {
		conn, device, err := d.dial(t.Context())
		if err != nil || device != "lo" {
			t.Fatalf("over %q: %v", device, err)
		}
		netx.Abort(conn)
	}
	d.Devices = []string{"nosuch0", "nosuch1"}
	if _, _, err := d.dial(t.Context()); !errors.Is(err, netx.ErrDevice) {
		t.Fatal(err)
	}
}
