package httpproxy

import (
	"errors"
	"strings"
	"testing"
)

func TestHeads(t *testing.T) {
	cases := []struct{ head, destination, first string }{
		{"CONNECT www.wiki.lab:443 HTTP/1.1\r\nHost: other\r\n\r\n", "www.wiki.lab:443", ""},
		{"CONNECT [fd00::1]:443 HTTP/1.0\n\n", "[fd00::1]:443", ""},
		{"CONNECT 10.65.0.2:8443 HTTP/1.1\r\n\r\n", "10.65.0.2:8443", ""},
		{"GET http://dl.lab/a?b=/c HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n\r\n", "dl.lab:80",
			"GET /a?b=/c HTTP/1.1\r\nHost: dl.lab\r\nAccept: */*\r\nConnection: close\r\n\r\n"},
		{"GET HTTP://dl.lab:8080 HTTP/1.1\r\n\r\n", "dl.lab:8080", "GET / HTTP/1.1\r\nHost: dl.lab:8080\r\nConnection: close\r\n\r\n"},
		{"GET http://me:secret@dl.lab?x HTTP/1.1\n\n", "dl.lab:80", "GET /?x HTTP/1.1\r\nHost: dl.lab\r\nConnection: close\r\n\r\n"},
		{"POST http://[fd00::1]/ HTTP/1.0\r\nContent-Length: 3\r\n\r\n", "[fd00::1]:80",
			"POST / HTTP/1.0\r\nHost: [fd00::1]\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"},
		// Fields for this hop are removed, also those that the client declares as such.
		{"GET http://dl.lab/ HTTP/1.1\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nx-hop: 1\r\n" +
			"Proxy-Authorization: Basic eA==\r\nX-End: 2\r\n\r\n", "dl.lab:80",
			"GET / HTTP/1.1\r\nHost: dl.lab\r\nX-End: 2\r\nConnection: close\r\n\r\n"},
	}
	for _, c := range cases {
		if end := endOfHead([]byte(c.head + "body")); end != len(c.head) {
			t.Errorf("%q: its end is at %d", c.head, end)
		}
		destination, first, err := parseHead([]byte(c.head))
		if err != nil || destination.String() != c.destination || string(first) != c.first {
			t.Errorf("%q: %s, %q, %v", c.head, destination, first, err)
		}
		if tunnel := strings.HasPrefix(c.head, methodConnect); tunnel != (first == nil) {
			t.Errorf("%q: what goes first is nil: %v", c.head, first == nil)
		}
	}
}

func TestBadHeads(t *testing.T) {
	cases := []struct {
		head string
		want error
	}{
		{"GET / HTTP/1.1", ErrTarget},
		{"GET /?next=http://dl.lab/ HTTP/1.1", ErrTarget},
		{"OPTIONS * HTTP/1.1", ErrTarget},
		{"GET https://dl.lab/ HTTP/1.1", ErrScheme},
		{"GET ftp://dl.lab/ HTTP/1.1", ErrScheme},
		{"GET http://dl.lab/ HTTP/2.0", ErrFormat},
		{"GET http://dl.lab/", ErrFormat},
		{"GET  http://dl.lab/ HTTP/1.1", ErrFormat},
		{"GET http://dl.lab/a b HTTP/1.1", ErrFormat},
		{"GET http://dl.lab/\rX:1 HTTP/1.1", ErrFormat},
		{"GET http:///path HTTP/1.1", ErrFormat},
		{"GET http://dl.lab:0/ HTTP/1.1", ErrFormat},
		{"GET http://dl.lab:99999/ HTTP/1.1", ErrFormat},
		{"GET http://" + strings.Repeat("a", 256) + "/ HTTP/1.1", ErrFormat},
		{"GET http://dl.lab/ HTTP/1.1\r\nno colon", ErrFormat},
		{"GET http://dl.lab/ HTTP/1.1\r\nA: 1\r\n folded", ErrFormat},
		{"GET http://dl.lab/ HTTP/1.1\r\nContent-Length : 1", ErrFormat},
		{"CONNECT dl.lab HTTP/1.1", ErrFormat},
		{"CONNECT :443 HTTP/1.1", ErrFormat},
		{"CONNECT dl.lab:http HTTP/1.1", ErrFormat},
		{"\x05\x01\x00", ErrFormat},
		{"\x16\x03\x01 is TLS", ErrFormat},
	}
	for _, c := range cases {
		if destination, _, err := parseHead([]byte(c.head + "\r\n\r\n")); !errors.Is(err, c.want) {
			t.Errorf("%.60q: %s, %v", c.head, destination, err)
		}
	}
	for _, part := range []string{"", "\r\n", "GET http://dl.lab/ HTTP/1.1\r\n", "GET http://dl.lab/ HTTP/1.1\r\nA: b\r\n\r"} {
		if end := endOfHead([]byte(part)); end != 0 {
			t.Errorf("%q ends at %d", part, end)
		}
	}
}

// FuzzHeads: with an accepted head, a client cannot add a line to the head for the
// server.
func FuzzHeads(f *testing.F) {
	f.Add("GET http://dl.lab/a HTTP/1.1\r\nA: b\r\nConnection: x\r\n\r\n")
	f.Add("CONNECT dl.lab:443 HTTP/1.1\n\n")
	f.Fuzz(func(t *testing.T, head string) {
		end := endOfHead([]byte(head))
		destination, first, err := parseHead([]byte(head[:end]))
		if err != nil {
			return
		}
		if destination.Port == 0 || destination.Domain == "" && !destination.IP.IsValid() {
			t.Errorf("%q: %+v", head, destination)
		}
		if first == nil {
			return
		}
		if at := endOfHead(first); at != len(first) {
			t.Errorf("%q: the head ends at %d of %q", head, at, first)
		}
		if strings.Count(string(first), "\n") > strings.Count(head, "\n")+3 || strings.Count(string(first), "\n") != strings.Count(string(first), "\r") {
			t.Errorf("%q: %q", head, first)
		}
	})
}
