package tables

import (
	"strings"
	"testing"
)

// TestDisplayFilter: a filter per connection, with all its subflows.
func TestDisplayFilter(t *testing.T) {
	sub := func(connection, subflow int32, client string, port int32, server string) Subflow {
		return Subflow{ConnectionID: connection, SubflowID: subflow, Client: client, ClientPort: port, Server: server, ServerPort: 80}
	}
	fill := func(connections int) func(*Sink) {
		return func(s *Sink) {
			for id := range int32(connections) {
				s.Subflows.Add(sub(id, 0, "10.0.0.1", 4000+id, "10.9.0.9"))
				if id == 1 {
					s.Subflows.Add(sub(id, 1, "fd21::2", 4000, "fd23::2"))
				}
				s.Connections.Add(Connection{ConnectionID: id, Kind: "tcp", BytesUp: int64(100 - id*id + 4*id)})
			}
		}
	}
	const start = "\ndisplay filter of Wireshark and tshark (-Y) for its packets:\n"
	const first = "  connection 0: ip.addr == 10.0.0.1 && tcp.port == 4000 && ip.addr == 10.9.0.9 && tcp.port == 80\n"
	const second = "  connection 1: (ip.addr == 10.0.0.1 && tcp.port == 4001 && ip.addr == 10.9.0.9 && tcp.port == 80)" +
		" || (ipv6.addr == fd21::2 && tcp.port == 4000 && ipv6.addr == fd23::2 && tcp.port == 80)\n"
	if got := summaryOf(t, 0, nil, Warnings{}, fill(2)); !strings.Contains(got, start+first+second) {
		t.Errorf("two connections:\n%s", got)
	}
	const largest = "  connection 2: ip.addr == 10.0.0.1 && tcp.port == 4002 && ip.addr == 10.9.0.9 && tcp.port == 80\n  others: --filter 'connection N'\n"
	if got := summaryOf(t, 0, nil, Warnings{}, fill(6)); !strings.Contains(got, start+largest) {
		t.Errorf("six connections:\n%s", got)
	}
	got := summaryOf(t, 0, nil, Warnings{}, func(s *Sink) {
		for id := range int32(filteredSubflows + 3) {
			s.Subflows.Add(sub(0, id, "10.0.0.1", 4000+id, "10.9.0.9"))
		}
		s.Connections.Add(Connection{Kind: "mptcp"})
	})
	if strings.Count(got, ") || (") != filteredSubflows-1 || !strings.Contains(got, "\n  connection 0, 8 of 11 subflows: (ip.addr") {
		t.Errorf("many subflows:\n%s", got)
	}
	if got := summaryOf(t, 0, nil, Warnings{}, func(s *Sink) { s.Connections.Add(Connection{Kind: "tcp"}) }); strings.Contains(got, "display filter") {
		t.Errorf("no addresses:\n%s", got)
	}
}
