package web

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/tables"
)

// line is data of one side: > from the client, < from the server, and ? bytes
// of the server that were not captured.
type line string

// said passes a conversation through a decoder, with the bytes of each line one
// millisecond later, and returns the rows.
func said(t *testing.T, clean bool, lines ...line) (rows []tables.Object, d *Decoder) {
	t.Helper()
	pool := stream.NewPool(1 << 20)
	objects := &tables.Stream[tables.Object]{}
	d = New(Options{Objects: objects, Pool: pool, Network: func(s int32) string { return [...]string{"wifi", "cellular"}[s] }})
	in := [2]stream.Buffer{stream.NewBuffer(pool), stream.NewBuffer(pool)}
	both := [2]*stream.Buffer{&in[up], &in[down]}
	for i, l := range lines {
		now, subflow := int64(i+1)*1e6, int32(i%2)
		switch l[0] {
		case '>':
			in[up].Append([]byte(l[1:]), now, subflow)
		case '<':
			in[down].Append([]byte(l[1:]), now, subflow)
		case '?':
			in[down].Miss(uint64(len(l)-1), now, subflow)
		}
		d.Advance(both)
		in[up].Settle()
		in[down].Settle()
	}
	d.Lose(up)
	d.Advance(both)
	d.End(clean)
	for dir := range in {
		in[dir].Release()
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes are kept", pool.Used())
	}
	return objects.Rows(), d
}

func short(rows []tables.Object) string {
	var out []string
	for _, r := range rows {
		whole := "cut"
		if r.Complete {
			whole = "whole"
		}
		out = append(out, fmt.Sprintf("%d %s %s %d %d/%d %s", r.StreamID, r.Method, r.URL, r.Status, r.RequestBody, r.ResponseBody, whole))
	}
	return strings.Join(out, "; ")
}

const get = ">GET /a HTTP/1.1\r\nHost: h.test\r\n\r\n"

func TestHTTP1(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []line
		want   string
		clean  bool
		failed bool
	}{
		"length":      {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, "1 GET http://h.test/a 200 0/5 whole", false, false},
		"length, cut": {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"}, "1 GET http://h.test/a 200 0/3 cut", true, false},
		"pieces": {[]line{">GE", ">T /a HTTP/1.1\r\nHo", ">st: h.test\r\n\r", ">\n", "<HTTP/1.1 200 OK\r\nContent-Le", "<ngth: 5\r\n", "<\r\n", "<he", "<llo"},
			"1 GET http://h.test/a 200 0/5 whole", false, false},
		"chunked with extension and trailer": {[]line{get, "<HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123", "<456789\r", "<\n0\r\nX: y\r\n\r\n"},
			"1 GET http://h.test/a 200 0/13 whole", false, false},
		"bad chunk":         {[]line{get, "<HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}, "1 GET http://h.test/a 200 0/0 cut", false, true},
		"until close":       {[]line{get, "<HTTP/1.0 200 OK\r\n\r\nhel", "<lo"}, "1 GET http://h.test/a 200 0/5 whole", true, false},
		"until close, open": {[]line{get, "<HTTP/1.0 200 OK\r\n\r\nhello"}, "1 GET http://h.test/a 200 0/5 cut", false, false},
		"interim responses": {[]line{">POST /p HTTP/1.1\r\nHost: h.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", "<HTTP/1.1 100 Continue\r\n\r\n", ">body",
			"<HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"}, "1 POST http://h.test/p 201 4/2 whole", false, false},
		"HEAD, 204, 304, pipelined": {[]line{">HEAD /h HTTP/1.1\r\nHost: x\r\n\r\nGET /n HTTP/1.1\r\nHost: x\r\n\r\nGET /m HTTP/1.1\r\nHost: x\r\n\r\nGET /g HTTP/1.1\r\nHost: x\r\n\r\n",
			"<HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nHTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!"},
			"1 HEAD http://x/h 200 0/0 whole; 2 GET http://x/n 204 0/0 whole; 3 GET http://x/m 304 0/0 whole; 4 GET http://x/g 200 0/1 whole", false, false},
		"chunked request": {[]line{">PUT /p HTTP/1.1\r\nHost: x:8080\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
			"1 PUT http://x:8080/p 200 4/0 whole", false, false},
		"to a proxy": {[]line{">GET http://far.test/a?b=c HTTP/1.1\r\nHost: far.test\r\n\r\n", "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
			"1 GET http://far.test/a?b=c 200 0/0 whole", false, false},
		"upgrade": {[]line{">GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", "<HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x81\x05hello", ">\x81\x00"},
			"1 GET http://x/ws 101 0/0 whole", false, false},
		"upgrade that the server ignores": {[]line{">GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n", "<HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1",
			">GET /2 HTTP/1.1\r\nHost: x\r\n\r\n", "<HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2"}, "1 GET http://x/1 200 0/1 whole; 2 GET http://x/2 200 0/1 whole", false, false},
		"no answer":            {[]line{get}, "1 GET http://h.test/a 0 0/0 cut", true, false},
		"blank lines before":   {[]line{">\r\n\r\n", get, "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, "", false, false},
		"blank lines between":  {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", line(">\r\n" + get[1:]), "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, "1 GET http://h.test/a 200 0/0 whole; 2 GET http://h.test/a 200 0/0 whole", false, false},
		"body not captured":    {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "?12345", "<yzHTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"}, "1 GET http://h.test/a 200 0/9 whole; 2   400 0/0 whole", false, false},
		"head not captured":    {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Le", "?12345", "<yz"}, "1 GET http://h.test/a 0 0/0 cut", false, true},
		"chunk not captured":   {[]line{get, "<HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", "?12345", "<yz\r\n0\r\n\r\n"}, "1 GET http://h.test/a 200 0/9 whole", false, false},
		"not HTTP":             {[]line{">EHLO mail.test\r\n", "<250 ok\r\n"}, "", false, false},
		"a bad request":        {[]line{">GET /a b HTTP/1.1\r\nHost h\r\n\r\n"}, "", false, true},
		"response out of turn": {[]line{get, "<HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n"}, "1 GET http://h.test/a 200 0/0 whole; 2   408 0/0 whole", false, false},
	} {
		rows, d := said(t, c.clean, c.lines...)
		if got := short(rows); got != c.want || d.Failed() != c.failed {
			t.Errorf("%s: %s, failed %v", name, got, d.Failed())
		}
	}
}

func TestTimesAndShares(t *testing.T) {
	rows, d := said(t, false, get, "<HTTP/1.1 100 Continue\r\n\r\n", "<HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "<1234", "<5678")
	want := tables.Object{
		Protocol: "http/1.1", StreamID: 1, Method: "GET", URL: "http://h.test/a", Status: 200, RequestNS: 1e6, ResponseNS: tables.Just[int64](3e6),
		EndNS: tables.Just[int64](5e6), DurationMS: tables.Just(4.0), ResponseBody: 8, HeaderBytes: 33 + 25 + 38, Complete: true,
		Subflows: "1:29,0:42", Networks: "cellular:29,wifi:42",
	}
	if len(rows) != 1 || rows[0] != want || d.Host() != "h.test" {
		t.Errorf("%+v", rows)
	}
}

func TestHosts(t *testing.T) {
	for authority, want := range map[string]string{"a.test": "a.test", "a.test:80": "a.test", "[::1]": "::1", "[::1]:80": "::1", "": ""} {
		if got := hostOf(authority); got != want {
			t.Errorf("%q: %q", authority, got)
		}
	}
	head := "GET / HTTP/1.1\r\nUser-Agent: x\r\nhOsT: a.test:81\r\nCookie: long"
	for n := range len(head) {
		want := ""
		if n >= strings.Index(head, "81\r\n")+4 {
			want = "a.test"
		}
		if got := PartialHost([]byte(head[:n])); got != want {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

// peer generates the frames of one side.
type peer struct {
	text    bytes.Buffer
	encoder *hpack.Encoder
}

func newPeer() *peer {
	p := &peer{}
	p.encoder = hpack.NewEncoder(&p.text)
	return p
}

func (p *peer) headers(pairs ...string) string {
	p.text.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = p.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return p.text.String()
}

func frame(kind, flags uint8, id uint32, payload string) string {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return string(binary.BigEndian.AppendUint32(b, id)) + payload
}

func (p *peer) get(path string) string {
	return p.headers(":method", "GET", ":scheme", "http", ":authority", "h.test", ":path", path)
}

func TestHTTP2(t *testing.T) {
	const end, done = flagEndStream, flagEndHeaders
	table := func(size uint32) string {
		return string(binary.BigEndian.AppendUint32([]byte{0, settingHeaderTableSize}, size))
	}
	for name, c := range map[string]struct {
		lines  func(c, s *peer) []line
		want   string
		failed bool
	}{
		"padding, priority, continuation": {func(c, s *peer) []line {
			block := c.get("/a")
			answer := s.headers(":status", "200", "content-type", "x/y")
			return []line{
				line(">" + preface + frame(frameSettings, 0, 0, "") + frame(frameHeaders, end|flagPadded|flagPriority, 1, "\x03\x00\x00\x00\x00\x10"+block[:4]+"\x00\x00\x00")),
				line(">" + frame(frameContinuation, 0, 1, block[4:6]) + frame(frameContinuation, done, 1, block[6:])),
				line("<" + frame(frameSettings, 0, 0, "") + frame(frameHeaders, done, 1, answer) + frame(frameData, flagPadded, 1, "\x04bytes\x00\x00\x00\x00")),
				line("<" + frame(frameData, flagPadded, 1, "\x00more") + frame(frameData, end, 1, "")),
			}
		}, "1 GET http://h.test/a 200 0/9 whole", false},
		"interim, trailers": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/a"))),
				line("<" + frame(frameHeaders, done, 1, s.headers(":status", "103")) + frame(frameHeaders, done, 1, s.headers(":status", "200")) +
					frame(frameData, 0, 1, "abc") + frame(frameHeaders, done|end, 1, s.headers("x-checksum", "1")))}
		}, "1 GET http://h.test/a 200 0/3 whole", false},
		"interleaved": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1")) + frame(frameHeaders, done, 3, c.get("/3")) + frame(frameData, end, 3, "up")),
				line("<" + frame(frameHeaders, done, 3, s.headers(":status", "200")) + frame(frameHeaders, done, 1, s.headers(":status", "404"))),
				line("<" + frame(frameData, 0, 1, "11") + frame(frameData, end, 3, "333") + frame(frameData, end, 1, "1"))}
		}, "1 GET http://h.test/1 404 0/3 whole; 3 GET http://h.test/3 200 2/3 whole", false},
		"reset by the server, by the client": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1")) + frame(frameHeaders, done|end, 3, c.get("/3"))),
				line("<" + frame(frameHeaders, done, 1, s.headers(":status", "200")) + frame(frameData, 0, 1, "x") + frame(frameReset, 0, 1, "\x00\x00\x00\x02")),
				line(">" + frame(frameReset, 0, 3, "\x00\x00\x00\x08")),
				line("<" + frame(frameHeaders, done, 3, s.headers(":status", "200")) + frame(frameData, end, 3, "late"))}
		}, "1 GET http://h.test/1 200 0/1 cut; 3 GET http://h.test/3 0 0/0 cut", false},
		"going away": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1")) + frame(frameHeaders, done|end, 3, c.get("/3"))),
				line("<" + frame(frameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00") + frame(frameHeaders, done|end, 1, s.headers(":status", "200")))}
		}, "1 GET http://h.test/1 200 0/0 whole; 3 GET http://h.test/3 0 0/0 cut", false},
		"push": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1"))),
				line("<" + frame(framePushPromise, done, 1, "\x00\x00\x00\x02"+s.get("/pushed")) + frame(frameHeaders, done|end, 1, s.headers(":status", "200")) +
					frame(frameHeaders, done, 2, s.headers(":status", "200")) + frame(frameData, end, 2, "pushed"))}
		}, "1 GET http://h.test/1 200 0/0 whole; 2 GET http://h.test/pushed 200 0/6 whole", false},
		"a larger table": {func(c, s *peer) []line {
			s.encoder.SetMaxDynamicTableSizeLimit(1 << 16)
			s.encoder.SetMaxDynamicTableSize(1 << 16)
			return []line{line(">" + preface + frame(frameSettings, 0, 0, table(1<<16)) + frame(frameHeaders, done|end, 1, c.get("/1")) + frame(frameHeaders, done|end, 3, c.get("/3"))),
				line("<" + frame(frameHeaders, done|end, 1, s.headers(":status", "200", "x-long", strings.Repeat("x", 9000)))),
				line("<" + frame(frameHeaders, done|end, 3, s.headers(":status", "200", "x-long", strings.Repeat("x", 9000))))}
		}, "1 GET http://h.test/1 200 0/0 whole; 3 GET http://h.test/3 200 0/0 whole", false},
		"a larger table that nobody allowed": {func(c, s *peer) []line {
			s.encoder.SetMaxDynamicTableSizeLimit(1 << 16)
			s.encoder.SetMaxDynamicTableSize(1 << 16)
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1"))), line("<" + frame(frameHeaders, done|end, 1, s.headers(":status", "200")))}
		}, "1 GET http://h.test/1 0 0/0 cut", true},
		"the answer is seen before the request": {func(c, s *peer) []line {
			return []line{line(">" + preface), line("<" + frame(frameHeaders, done, 1, s.headers(":status", "200")) + frame(frameData, end, 1, "abc")),
				line(">" + frame(frameHeaders, done|end, 1, c.get("/1")))}
		}, "1 GET http://h.test/1 200 0/3 whole", false},
		"a continuation of nothing": {func(c, _ *peer) []line {
			return []line{line(">" + preface + frame(frameContinuation, done, 1, c.get("/1")))}
		}, "", true},
		"a block that is interrupted": {func(c, _ *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, 0, 1, c.get("/1")) + frame(frameSettings, 0, 0, ""))}
		}, "", true},
		"padding longer than the frame": {func(c, s *peer) []line {
			return []line{line(">" + preface + frame(frameHeaders, done|end, 1, c.get("/1"))),
				line("<" + frame(frameHeaders, done, 1, s.headers(":status", "200")) + frame(frameData, flagPadded, 1, "\x05abc"))}
		}, "1 GET http://h.test/1 200 0/0 cut", true},
		"an upgrade to h2c": {func(_, s *peer) []line {
			return []line{">GET /up HTTP/1.1\r\nHost: h.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
				line("<HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + frame(frameSettings, 0, 0, "")),
				line(">" + preface + frame(frameSettings, 0, 0, "")),
				line("<" + frame(frameHeaders, done, 1, s.headers(":status", "200")) + frame(frameData, end, 1, "up"))}
		}, "1 GET http://h.test/up 200 0/2 whole", false},
	} {
		lines := c.lines(newPeer(), newPeer())
		rows, d := said(t, false, lines...)
		if got := short(rows); got != c.want || d.Failed() != c.failed {
			t.Errorf("%s: %s, failed %v", name, got, d.Failed())
		}
		var single []line // the same, byte by byte
		for _, l := range lines {
			for i := 1; i < len(l); i++ {
				single = append(single, l[:1]+l[i:i+1])
			}
		}
		rows, _ = said(t, false, single...)
		if got := short(rows); got != c.want {
			t.Errorf("%s, byte by byte: %s", name, got)
		}
	}
}

func TestFramesAreCountedWithTheirHeaders(t *testing.T) {
	c, s := newPeer(), newPeer()
	question, answer := c.get("/a"), s.headers(":status", "200")
	rows, _ := said(t, false, line(">"+preface+frame(frameHeaders, flagEndHeaders|flagEndStream, 1, question)),
		line("<"+frame(frameHeaders, flagEndHeaders, 1, answer)), line("<"+frame(frameData, flagEndStream|flagPadded, 1, "\x02abc\x00\x00")))
	headers := int64(9 + len(question) + 9 + len(answer))
	if len(rows) != 1 || rows[0].HeaderBytes != headers || rows[0].ResponseBody != 3 || rows[0].Subflows != fmt.Sprintf("1:%d,0:%d", 9+len(answer), 9+6) {
		t.Errorf("%+v", rows)
	}
}

func TestRowsAreWrittenEarlyWhenThereIsNoRoom(t *testing.T) {
	pool := stream.NewPool(8 << 10)
	objects := &tables.Stream[tables.Object]{}
	d := New(Options{Objects: objects, Pool: pool})
	in := [2]stream.Buffer{stream.NewBuffer(pool), stream.NewBuffer(pool)}
	const n = 100
	for i := range n {
		in[up].Append([]byte(get[1:]), int64(i), 0)
		in[down].Append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), int64(i), 0)
		d.Advance([2]*stream.Buffer{&in[up], &in[down]})
		in[up].Settle()
		in[down].Settle()
	}
	if len(objects.Rows()) == 0 || d.Failed() {
		t.Errorf("%d rows, failed %v", len(objects.Rows()), d.Failed())
	}
	d.End(true)
	in[up].Release()
	in[down].Release()
	ids := []int32{}
	for _, r := range objects.Rows() {
		ids = append(ids, r.StreamID)
	}
	if len(ids) != n || !slices.IsSorted(ids) || pool.Used() != 0 {
		t.Errorf("%d rows, %d bytes kept", len(ids), pool.Used())
	}
}

func FuzzDecoder(f *testing.F) {
	c, s := newPeer(), newPeer()
	f.Add([]byte(get[1:]), []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), uint8(3))
	f.Add([]byte(preface+frame(frameHeaders, flagEndHeaders|flagEndStream, 1, c.get("/a"))),
		[]byte(frame(frameHeaders, flagEndHeaders, 1, s.headers(":status", "200"))+frame(frameData, flagEndStream|flagPadded, 1, "\x02abc\x00\x00")), uint8(7))
	f.Fuzz(func(t *testing.T, upward, downward []byte, step uint8) {
		var whole, pieces []line
		whole = append(whole, line(">"+string(upward)), line("<"+string(downward)))
		for _, part := range whole {
			for i := 1; i < len(part); i += int(step) + 1 {
				pieces = append(pieces, part[:1]+part[i:min(i+int(step)+1, len(part))])
			}
		}
		at, d := said(t, true, whole...)
		in, _ := said(t, true, pieces...)
		if a, b := short(at), short(in); a != b && !d.Failed() {
			t.Fatalf("at once %s, in pieces %s", a, b)
		}
	})
}
