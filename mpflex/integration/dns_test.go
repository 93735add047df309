package integration

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"mplab/mpflex/connlog"
)

const dnsServer = "10.65.0.53:53"

// nameServer answers over TCP: 10.65.0.2 for dl.lab., 200 addresses for big.lab., no
// answer for silent.lab., NXDOMAIN for all others. After perConnection queries it
// closes the connection without answering the next one.
func nameServer(t testing.TB, perConnection int) (opened *atomic.Int32) {
	return nameServerAt(t, "origin", dnsServer, perConnection)
}

// nameServerAt is nameServer in another node and at another address.
func nameServerAt(t testing.TB, node, address string, perConnection int) (opened *atomic.Int32) {
	opened = &atomic.Int32{}
	serve(t, node, address, func(conn *net.TCPConn) {
		defer conn.Close()
		opened.Add(1)
		for served := 0; ; served++ {
			var prefix [2]byte
			if _, err := io.ReadFull(conn, prefix[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(prefix[:]))
			if _, err := io.ReadFull(conn, query); err != nil || served == perConnection {
				return
			}
			if answer := answerTo(query); answer != nil {
				framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
				_, _ = conn.Write(append(framed, answer...))
			}
		}
	})
	return opened
}

func answerTo(query []byte) []byte {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil || len(message.Questions) != 1 {
		return nil
	}
	message.Response = true
	message.Additionals = nil
	name := message.Questions[0].Name
	header := dnsmessage.ResourceHeader{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 60}
	count := map[string]int{"dl.lab.": 1, "big.lab.": 200}[name.String()]
	switch {
	case name.String() == "silent.lab.":
		return nil
	case count == 0:
		message.RCode = dnsmessage.RCodeNameError
	}
	for i := range count {
		message.Answers = append(message.Answers, dnsmessage.Resource{
			Header: header, Body: &dnsmessage.AResource{A: [4]byte{10, 65, byte(i), 2}},
		})
	}
	answer, _ := message.Pack()
	return answer
}

// ask sends one query over UDP from the phone and returns the answer.
func ask(t testing.TB, name string, kind dnsmessage.Type, id uint16) dnsmessage.Message {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	inNode(t, "phone", func() { conn, err = net.Dial("udp", dnsServer) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(packed); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64<<10)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Fatalf("no answer to %s: %v", name, err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buffer[:n]); err != nil {
		t.Fatal(err)
	}
	if answer.ID != id || !answer.Response {
		t.Errorf("%s: the answer's header is %+v", name, answer.Header)
	}
	return answer
}

func TestDNS(t *testing.T) {
	s := start(t, nil)
	opened := nameServer(t, 1000)
	if answer := ask(t, "dl.lab.", dnsmessage.TypeA, 1); len(answer.Answers) != 1 || answer.RCode != 0 {
		t.Errorf("dl.lab.: %+v", answer)
	}
	if answer := ask(t, "other.lab.", dnsmessage.TypeAAAA, 2); answer.RCode != dnsmessage.RCodeNameError {
		t.Errorf("other.lab.: %+v", answer)
	}
	if answer := ask(t, "big.lab.", dnsmessage.TypeA, 3); !answer.Truncated || len(answer.Answers) != 0 {
		t.Errorf("big.lab.: not truncated: %+v", answer.Header)
	}
	if answer := ask(t, "silent.lab.", 65, 4); answer.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("silent.lab.: %+v", answer)
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections to the server; one is enough", n)
	}
	s.agent.stop(t)
	want := []connlog.Lookup{
		{Name: "dl.lab.", Type: "A", RCode: "NOERROR"},
		{Name: "other.lab.", Type: "AAAA", RCode: "NXDOMAIN"},
		{Name: "big.lab.", Type: "A", RCode: "NOERROR"},
		{Name: "silent.lab.", Type: "HTTPS", RCode: "SERVFAIL"},
	}
	got := records[connlog.Lookup](t, s.agent.log, "dns")
	if len(got) != len(want) {
		t.Fatalf("lookups: %+v", got)
	}
	for i := range want {
		if got[i].Name != want[i].Name || got[i].Type != want[i].Type || got[i].RCode != want[i].RCode {
			t.Errorf("lookup %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if carried := connections(t, s.agent, dnsServer, 1)[0]; carried.Process != "mpflex" || carried.BytesUp == 0 || carried.BytesDown == 0 {
		t.Errorf("the carrying connection: %+v", carried)
	}
}

func TestDNSServerThatClosesIsAskedAgain(t *testing.T) {
	start(t, nil)
	opened := nameServer(t, 3)
	for i := range uint16(10) {
		if answer := ask(t, "dl.lab.", dnsmessage.TypeA, i); len(answer.Answers) != 1 {
			t.Errorf("query %d: %+v", i, answer)
		}
	}
	if n := opened.Load(); n < 3 {
		t.Errorf("%d connections for 10 queries of at most 3 each", n)
	}
}

func TestDNSWithoutServerFails(t *testing.T) {
	s := start(t, nil)
	if answer := ask(t, "dl.lab.", dnsmessage.TypeA, 7); answer.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("%+v", answer)
	}
	if got := connections(t, s.agent, dnsServer, 1)[0]; got.Status != connlog.Refused {
		t.Errorf("%+v", got)
	}
}
