package dnsforward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	headerSize = 12 // RFC 1035 §4.1.1
	// plainUDPSize is the maximum size of an answer without EDNS (RFC 1035 §4.2.1).
	plainUDPSize = 512
	flagTC       = 0x02 // in the third byte of the header
)

// errNotAQuery reports a message that cannot be forwarded.
var errNotAQuery = errors.New("not a DNS query with one question")

// question is the question of a lookup.
type question struct {
	name  string // as in the query, with the final dot
	kind  dnsmessage.Type
	class dnsmessage.Class
	end   int // offset after the question section
}

// matches reports whether an answer's question is equal to this one.
func (q question) matches(other question) bool {
	return strings.EqualFold(q.name, other.name) && q.kind == other.kind && q.class == other.class
}

// parseQuery returns the question of a query and the maximum size of an answer over UDP
// (RFC 6891 §6.2.3).
func parseQuery(message []byte) (q question, udpSize int, err error) {
	header, q, parser, err := parseHead(message)
	if err != nil || header.Response {
		return question{}, 0, errNotAQuery
	}
	return q, advertisedSize(parser), nil
}

// parseAnswer returns the question and the response code of an answer.
func parseAnswer(message []byte) (question, dnsmessage.RCode, error) {
	header, q, _, err := parseHead(message)
	if err != nil {
		return question{}, 0, err
	}
	if !header.Response {
		return question{}, 0, errors.New("not a DNS answer")
	}
	return q, header.RCode, nil
}

func parseHead(message []byte) (dnsmessage.Header, question, *dnsmessage.Parser, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil {
		return header, question{}, nil, err
	}
	questions, err := parser.AllQuestions()
	if err != nil {
		return header, question{}, nil, err
	}
	if len(questions) != 1 {
		return header, question{}, nil, errNotAQuery
	}
	end, ok := questionEnd(message)
	if !ok {
		return header, question{}, nil, errNotAQuery
	}
	asked := questions[0]
	return header, question{asked.Name.String(), asked.Type, asked.Class, end}, &parser, nil
}

// advertisedSize returns the UDP size from the OPT record of a query.
func advertisedSize(parser *dnsmessage.Parser) int {
	if parser.SkipAllAnswers() != nil || parser.SkipAllAuthorities() != nil {
		return plainUDPSize
	}
	for {
		header, err := parser.AdditionalHeader()
		if err != nil {
			return plainUDPSize
		}
		if header.Type == dnsmessage.TypeOPT {
			return max(int(header.Class), plainUDPSize)
		}
		if parser.SkipAdditional() != nil {
			return plainUDPSize
		}
	}
}

// questionEnd returns the offset after a single, uncompressed question.
func questionEnd(message []byte) (int, bool) {
	at := headerSize
	for at < len(message) {
		length := int(message[at])
		at++
		if length == 0 {
			at += 4 // type and class
			return at, at <= len(message)
		}
		if length > 63 { // compression pointer: impossible in the first question
			return 0, false
		}
		at += length
	}
	return 0, false
}

// failure returns an answer to a query that has only a response code.
func failure(query []byte, end int, code dnsmessage.RCode) []byte {
	answer := append([]byte(nil), query[:end]...)
	answer[2] = query[2]&0x79 | 0x80 // QR; opcode and RD of the query
	answer[3] = byte(code)
	questions := uint16(0)
	if end > headerSize {
		questions = 1
	}
	setCounts(answer, questions)
	return answer
}

// truncated cuts an answer to its question and sets TC, so the client repeats the query
// over TCP (RFC 7766 §5).
func truncated(answer []byte, end int) []byte {
	short := append([]byte(nil), answer[:end]...)
	short[2] |= flagTC
	setCounts(short, 1)
	return short
}

func setCounts(message []byte, questions uint16) {
	clear(message[4:headerSize])
	binary.BigEndian.PutUint16(message[4:], questions)
}

// typeName returns the name of a record type as in zone files (RFC 3597 §5 for unknown
// types).
func typeName(t dnsmessage.Type) string {
	switch t {
	case 64:
		return "SVCB"
	case 65:
		return "HTTPS"
	}
	name, known := strings.CutPrefix(t.String(), "Type")
	if !known {
		return fmt.Sprintf("TYPE%d", uint16(t))
	}
	return name
}

var rcodeNames = []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"}

// rcodeName returns the name of a response code (RFC 1035 §4.1.1).
func rcodeName(code dnsmessage.RCode) string {
	if int(code) < len(rcodeNames) {
		return rcodeNames[code]
	}
	return fmt.Sprintf("RCODE%d", uint16(code))
}
