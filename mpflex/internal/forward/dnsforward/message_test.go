package dnsforward

import (
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func query(t testing.TB, name string, edns int) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0x1234, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	if edns > 0 {
		var header dnsmessage.ResourceHeader
		if err := header.SetEDNS0(edns, 0, false); err != nil {
			t.Fatal(err)
		}
		m.Additionals = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.OPTResource{}}}
	}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestParseQuery(t *testing.T) {
	for edns, want := range map[int]int{0: 512, 100: 512, 1232: 1232} {
		q, size, err := parseQuery(query(t, "dl.lab.", edns))
		if err != nil || q.name != "dl.lab." || q.kind != dnsmessage.TypeA || q.end != 12+8+4 || size != want {
			t.Errorf("%+v, %d, %v", q, size, err)
		}
	}
	if _, _, err := parseQuery(failure(query(t, "a.", 0), 12+3+4, dnsmessage.RCodeRefused)); err == nil {
		t.Error("an answer was taken for a query")
	}
}

func TestFailure(t *testing.T) {
	asked := query(t, "dl.lab.", 1232)
	q, _, _ := parseQuery(asked)
	var answer dnsmessage.Message
	if err := answer.Unpack(failure(asked, q.end, dnsmessage.RCodeServerFailure)); err != nil {
		t.Fatal(err)
	}
	if answer.ID != 0x1234 || !answer.Response || !answer.RecursionDesired || answer.RCode != dnsmessage.RCodeServerFailure ||
		len(answer.Questions) != 1 || len(answer.Additionals) != 0 {
		t.Errorf("%+v", answer)
	}
}

func TestNames(t *testing.T) {
	for kind, want := range map[dnsmessage.Type]string{1: "A", 28: "AAAA", 65: "HTTPS", 64: "SVCB", 999: "TYPE999"} {
		if got := typeName(kind); got != want {
			t.Errorf("type %d: %s", kind, got)
		}
	}
	for code, want := range map[dnsmessage.RCode]string{0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN", 16: "RCODE16"} {
		if got := rcodeName(code); got != want {
			t.Errorf("rcode %d: %s", code, got)
		}
	}
}

// FuzzParseQuery: failure works for every message that parseQuery accepts.
func FuzzParseQuery(f *testing.F) {
	f.Add(query(f, "dl.lab.", 1232))
	f.Add(make([]byte, headerSize))
	f.Fuzz(func(t *testing.T, message []byte) {
		q, _, err := parseQuery(message)
		if err != nil {
			return
		}
		got, code, err := parseAnswer(failure(message, q.end, dnsmessage.RCodeServerFailure))
		if err != nil || code != dnsmessage.RCodeServerFailure || !q.matches(got) {
			t.Errorf("%+v %v %v", got, code, err)
		}
	})
}

// FuzzParseAnswer: every message that parseAnswer accepts can be truncated, and then
// still has the same question.
func FuzzParseAnswer(f *testing.F) {
	f.Add(failure(query(f, "dl.lab.", 1232), len(query(f, "dl.lab.", 0)), dnsmessage.RCodeNameError))
	f.Add(make([]byte, headerSize))
	f.Fuzz(func(t *testing.T, message []byte) {
		q, code, err := parseAnswer(message)
		if err != nil {
			return
		}
		got, again, err := parseAnswer(truncated(message, q.end))
		if err != nil || again != code || !q.matches(got) {
			t.Errorf("%+v %v %v", got, again, err)
		}
	})
}
