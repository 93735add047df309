package tlskeys

import (
	"os"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
)

const (
	random  = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	secret2 = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
	secret3 = secret2 + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
)

func TestALogHoldsTheSecretsOfEachConnection(t *testing.T) {
	text := "# SSL/TLS secrets log file\r\n\r\n" +
		"CLIENT_RANDOM " + random + " " + secret3 + "\r\n" +
		"CLIENT_HANDSHAKE_TRAFFIC_SECRET " + strings.ToUpper(random) + " " + secret2 + "\n" +
		"SERVER_TRAFFIC_SECRET_0 " + random + " " + secret3 + "\n" +
		"EXPORTER_SECRET " + random + " " + secret2 + "\n" +
		"RSA 0011223344556677 " + secret3
	l, err := Open(fixture.File(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var r Random
	for i := range r {
		r[i] = byte(i%16) * 0x11
	}
	s := l.Find(r)
	if len(l.connections) != 1 || s == nil {
		t.Fatalf("%d connections, %v", len(l.connections), s)
	}
	if len(s.Master) != 48 || len(s.ClientHandshake) != 32 || len(s.Server) != 48 || s.Client != nil || s.ServerHandshake != nil || s.ClientEarly != nil {
		t.Errorf("%+v", s)
	}
	if l.Find(Random{}) != nil || (*Log)(nil).Find(r) != nil {
		t.Error("secrets of a connection that is not in the log")
	}
}

func TestABadLineIsNamed(t *testing.T) {
	for _, c := range []struct{ line, found, want string }{
		{"CLIENT_RANDOM", "1 words", form},
		{"CLIENT_RANDOM " + random[1:] + " " + secret3, `"0112233445566778899a"… of 63 characters`, "64 hexadecimal digits"},
		{"CLIENT_RANDOM x " + secret3, `the client random "x"`, "64 hexadecimal digits"},
		{"CLIENT_RANDOM " + random + " " + secret2, "a secret of 32 bytes", "want 48"},
		{"SERVER_TRAFFIC_SECRET_0 " + random + " 00", "a secret of 1 bytes", "want 32 or 48"},
		{"SERVER_TRAFFIC_SECRET_0 " + random + " 0g", "not hexadecimal", form},
		{strings.Repeat("x", 70000), "a line of more than 65536 bytes", form},
	} {
		name := fixture.File(t, "# first\n"+c.line+"\n")
		_, err := Open(name)
		if err == nil {
			t.Errorf("%.40s: no error", c.line)
			continue
		}
		for _, part := range []string{name + ":2: found ", c.found, c.want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: lacks %q", err, part)
			}
		}
	}
}

func TestSeveralFilesAreOneLog(t *testing.T) {
	one := fixture.File(t, "CLIENT_TRAFFIC_SECRET_0 "+random+" "+secret2+"\n")
	two := fixture.File(t, "CLIENT_EARLY_TRAFFIC_SECRET "+random+" "+secret2+"\n"+"SERVER_HANDSHAKE_TRAFFIC_SECRET "+random+" "+secret2)
	l, err := Open(one, two)
	if err != nil || len(l.connections) != 1 {
		t.Fatal(l, err)
	}
	for _, s := range l.connections {
		if s.Client == nil || s.ClientEarly == nil || s.ServerHandshake == nil {
			t.Errorf("%+v", s)
		}
	}
	if _, err := Open(one, one+".none"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
