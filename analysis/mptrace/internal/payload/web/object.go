package web

import (
	"fmt"
	"strings"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/tables"
)

// object is a request with its response, as far as they were read.
type object struct {
	number   int32
	method   string
	url      string
	status   int
	kind     string // Content-Type
	asked    bool   // the request is known
	complete bool

	request, response         stream.Tally
	answeredNS                int64 // arrival of the first byte of the final response
	requestBody, responseBody int64
	header                    int64
	paid                      int // reserved in the pool
}

// objectSize is the approximate memory of an object without its strings, in
// bytes.
const objectSize = 512

func (o *object) row(connection int32, protocol string, network func(int32) string) tables.Object {
	row := tables.Object{
		ConnectionID: connection, Protocol: protocol, StreamID: o.number,
		Method: valid(o.method), URL: valid(o.url), Status: int32(o.status), Type: valid(o.kind),
		RequestNS:   o.request.FirstNS,
		RequestBody: o.requestBody, ResponseBody: o.responseBody, HeaderBytes: o.header,
		Complete: o.complete,
	}
	if !o.asked {
		row.RequestNS = o.response.FirstNS
	}
	if o.status != 0 {
		row.ResponseNS = tables.Just(o.answeredNS)
	}
	if o.response.Bytes > 0 {
		row.EndNS = tables.Just(o.response.LastNS)
		row.DurationMS = tables.Just(float64(o.response.LastNS-row.RequestNS) / 1e6)
	}
	row.Subflows, row.Networks = shares(o.response.Shares, network)
	return row
}

// valid replaces invalid UTF-8; a sender can send arbitrary bytes.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// shares formats the bytes by subflow and by network. Subflows with an unknown
// network appear only by subflow.
func shares(all []stream.Share, network func(int32) string) (subflows, networks string) {
	var a, b strings.Builder
	var names []string
	bytes := map[string]int64{}
	for i, s := range all {
		if i > 0 {
			a.WriteByte(',')
		}
		fmt.Fprintf(&a, "%d:%d", s.Subflow, s.Bytes)
		name := network(s.Subflow)
		if name == "" {
			continue
		}
		if _, known := bytes[name]; !known {
			names = append(names, name)
		}
		bytes[name] += s.Bytes
	}
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%d", name, bytes[name])
	}
	return a.String(), b.String()
}
