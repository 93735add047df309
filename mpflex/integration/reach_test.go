package integration

import (
	"net/netip"
	"testing"

	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/forward/udprelay"
)

// TestWideRulesLeaveTheProxy checks that a rule for all addresses does not permit the
// proxy's own machine, with SOCKS or HTTP.
func TestWideRulesLeaveTheProxy(t *testing.T) {
	needLab(t)
	startProxy(t, values{"allow": []string{"0.0.0.0/0:*", "[::/0]:*"}})
	settings := withHTTP(transports()["tcp"])
	settings["listen"] = values{"socks": socksServer, "http": httpServer}
	startAgent(t, settings)
	serve(t, "proxy", "0.0.0.0:80", echo)
	serveOrigin(t, web, echo)
	for destination, want := range map[string]bool{
		web: true, "127.0.0.1:80": false, "127.1.1.1:80": false, "0.0.0.0:80": false, "10.64.3.2:80": false, "10.65.255.1:80": false, "10.64.3.2:7001": false,
		"169.254.169.254:80": false,
	} {
		address := netip.MustParseAddrPort(destination)
		message := append([]byte{1}, address.Addr().AsSlice()...)
		_, code := connectSocks(t, append(message, byte(address.Port()>>8), byte(address.Port())), "")
		_, status, _ := askHTTP(t, "CONNECT "+destination+" HTTP/1.1")
		if code == 0 != want || code != 0 && code != 2 {
			t.Errorf("%s: SOCKS says %d", destination, code)
		}
		if status == 200 != want || status != 200 && status != 403 {
			t.Errorf("%s: HTTP says %d", destination, status)
		}
	}
}

// TestWideRulesLeaveTheProxyToDatagrams checks the same with datagrams.
func TestWideRulesLeaveTheProxyToDatagrams(t *testing.T) {
	needLab(t)
	p := startProxy(t, values{"allow": []string{"0.0.0.0/0:*", "[::/0]:*"}})
	attached(t, startAgent(t, withSocks(flex(false))))
	var tunnel *socks.Tunnel
	var err error
	inNode(t, "phone", func() { tunnel, err = socks.OpenTunnel(t.Context(), netip.MustParseAddrPort(socksServer), nil) })
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	all := []string{"127.0.0.1:8080", "10.64.3.2:8080", "10.65.255.1:8080", "169.254.169.254:8080"}
	eventually(t, "that all are refused", func() bool {
		for _, destination := range all {
			_ = tunnel.Send([]byte("hello"), socks.FromAddrPort(netip.MustParseAddrPort(destination)))
		}
		refused := map[string]bool{}
		for _, r := range records[udprelay.Notice](t, p.log, "udp-error") {
			if r.Error == udprelay.ErrDenied.Error() {
				refused[r.Destination.String()] = true
			}
		}
		return len(refused) == len(all)
	})
}
