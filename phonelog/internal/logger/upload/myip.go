package upload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"time"

	"mplab/phonelog/internal/config"
)

// MyIP asks the collector over one interface for the address that it sees. It
// asks twice, so that the second request uses an open connection.
func (u *Uploader) MyIP(ctx context.Context, device string) (Address, error) {
	ctx, cancel := context.WithTimeout(ctx, config.Duration(u.config.TimeoutS))
	defer cancel()
	client := u.client(device)
	defer client.CloseIdleConnections()
	var a Address
	var dialed time.Time
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(string, string) { dialed = time.Now() },
		ConnectDone:  func(_, _ string, err error) { a.Connect = time.Since(dialed) },
	})
	if _, err := u.ask(traced, client); err != nil {
		return Address{}, err
	}
	start := time.Now()
	seen, err := u.ask(ctx, client)
	a.Address, a.RTT = seen, time.Since(start)
	return a, err
}

func (u *Uploader) ask(ctx context.Context, client *http.Client) (netip.Addr, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.config.URL+"/myip", nil)
	if err != nil {
		return netip.Addr{}, err
	}
	u.authorize(request)
	response, err := client.Do(request)
	if err != nil {
		return netip.Addr{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read
	text, err := io.ReadAll(io.LimitReader(response.Body, answerMost))
	if err != nil {
		return netip.Addr{}, err
	}
	if response.StatusCode != http.StatusOK {
		return netip.Addr{}, fmt.Errorf("the collector says %s", saying(response.Status, text))
	}
	return netip.ParseAddr(strings.TrimSpace(string(text)))
}
