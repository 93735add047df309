package tlshello

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
)

// recorded returns the first record of a real TLS client.
func recorded(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	record := make([]byte, RecordHeader+maxFragment)
	if _, err := io.ReadFull(server, record[:RecordHeader]); err != nil {
		t.Fatal(err)
	}
	record = record[:RecordHeader+int(record[3])<<8+int(record[4])]
	if _, err := io.ReadFull(server, record[RecordHeader:]); err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	return record
}

// TestEveryPrefix: each field is set as soon as its last byte has arrived.
func TestEveryPrefix(t *testing.T) {
	record := recorded(t, &tls.Config{ServerName: "a.example"})
	message, ended := Join(append(bytes.Clone(record), 23, 3, 3, 0, 1, 0))
	if !ended || !bytes.Equal(message, record[RecordHeader:]) {
		t.Fatalf("%v, %x", ended, message)
	}
	const randomEnd = 4 + 2 + 32
	nameEnd := bytes.Index(message, []byte("a.example")) + len("a.example")
	for n := range len(message) + 1 {
		hello, state := Parse(message[:n])
		if hello.HasRandom != (n >= randomEnd) || hello.HasRandom && !bytes.Equal(hello.Random[:], message[6:randomEnd]) {
			t.Fatalf("%d bytes: random %v %x", n, hello.HasRandom, hello.Random)
		}
		if hello.HasServerName != (n >= nameEnd) || (hello.ServerName == "a.example") != (n >= nameEnd) {
			t.Fatalf("%d bytes: %+v", n, hello)
		}
		if (state == Complete) != (n == len(message)) || state == Broken {
			t.Fatalf("%d bytes: state %d", n, state)
		}
	}
}

// handmade returns a ClientHello with these extensions.
func handmade(extensions ...byte) []byte {
	body := append(append([]byte{3, 3}, make([]byte, 32)...), 0, 0, 2, 0x13, 1, 1, 0, 0, byte(len(extensions)))
	body = append(body, extensions...)
	return append([]byte{ClientHello, 0, 0, byte(len(body))}, body...)
}

func TestParse(t *testing.T) {
	name := []byte{0, 0, 0, 6, 0, 4, 0, 0, 1, 'a'}
	early := []byte{0, 42, 0, 0}
	random := Hello{HasRandom: true}
	for about, c := range map[string]struct {
		message []byte
		want    Hello
		state   State
	}{
		"nothing":              {nil, Hello{}, Partial},
		"another message":      {[]byte{2}, Hello{}, Broken},
		"a short message":      {[]byte{ClientHello, 0, 0, 3, 3, 3, 0, 0, 0, 0}, Hello{}, Broken},
		"no extensions":        {handmade(), random, Complete},
		"name and early data":  {handmade(append(name, early...)...), Hello{HasRandom: true, ServerName: "a", HasServerName: true, EarlyData: true}, Complete},
		"two names":            {handmade(append(name, 0, 0, 0, 6, 0, 4, 0, 0, 1, 'b')...), Hello{HasRandom: true, ServerName: "a", HasServerName: true}, Complete},
		"another kind of name": {handmade(append([]byte{0, 0, 0, 6, 0, 4, 1, 0, 1, 'a'}, early...)...), Hello{HasRandom: true, HasServerName: true, EarlyData: true}, Complete},
		"an empty list":        {handmade(append([]byte{0, 0, 0, 2, 0, 0}, early...)...), Hello{HasRandom: true, HasServerName: true, EarlyData: true}, Complete},
		"a name beyond its list": {handmade(append([]byte{0, 0, 0, 6, 0, 4, 0, 0, 2, 'a'}, early...)...),
			Hello{HasRandom: true, HasServerName: true, EarlyData: true}, Complete},
		"an extension beyond the others": {handmade(append(early, 0, 1, 0, 9)...), Hello{HasRandom: true, EarlyData: true}, Broken},
	} {
		if hello, state := Parse(c.message); hello != c.want || state != c.state {
			t.Errorf("%s: %+v, %d", about, hello, state)
		}
	}
}

// FuzzParse: what a part of a message says stays true when more bytes arrive.
func FuzzParse(f *testing.F) {
	f.Add(recorded(f, &tls.Config{ServerName: "a.example"})[RecordHeader:], uint16(100))
	f.Add(handmade(0, 0, 0, 6, 0, 4, 0, 0, 1, 'a', 0, 42, 0, 0), uint16(50))
	f.Fuzz(func(t *testing.T, message []byte, cut uint16) {
		whole, state := Parse(message)
		part, partState := Parse(message[:min(int(cut), len(message))])
		if part.HasRandom && part.Random != whole.Random || part.HasServerName && part.ServerName != whole.ServerName ||
			part.EarlyData && !whole.EarlyData || part.HasServerName && !whole.HasServerName {
			t.Errorf("%+v of a part, %+v of the whole", part, whole)
		}
		if partState != Partial && (partState != state || part != whole) {
			t.Errorf("state %d of a part, %d of the whole: %+v, %+v", partState, state, part, whole)
		}
	})
}
