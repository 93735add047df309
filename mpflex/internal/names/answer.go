package names

import (
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// maxAliases bounds the CNAME chain that is followed in an answer.
const maxAliases = 16

// Learn stores the addresses in a DNS answer under the name in its question, following
// aliases (RFC 1034 §3.6.2). It returns their number. From a damaged answer it takes
// the records before the damage.
func (c *Cache) Learn(message []byte, now time.Time) int {
	asked, found := readAnswer(message)
	for _, a := range found {
		c.Add(asked, a.addr, a.ttl, now)
	}
	return len(found)
}

// address is an address of a name.
type address struct {
	addr netip.Addr
	ttl  time.Duration
}

// readAnswer returns the name in the question and its addresses. Each has the lowest
// time to live of the records that lead to it.
func readAnswer(message []byte) (asked string, found []address) {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || !header.Response || header.RCode != dnsmessage.RCodeSuccess {
		return "", nil
	}
	question, err := parser.Question()
	if err != nil || parser.SkipAllQuestions() != nil {
		return "", nil
	}
	aliases, owned := records(&parser)
	asked = key(question.Name)
	name, ttl := asked, maxTTL
	for range maxAliases {
		for _, a := range owned[name] {
			found = append(found, address{a.addr, min(a.ttl, ttl)})
		}
		next, aliased := aliases[name]
		if !aliased {
			break
		}
		delete(aliases, name) // ends a loop of aliases
		name, ttl = next.target, min(ttl, next.ttl)
	}
	return asked, found
}

type alias struct {
	target string
	ttl    time.Duration
}

// records parses the answer section: the alias and the addresses of each name.
func records(parser *dnsmessage.Parser) (map[string]alias, map[string][]address) {
	aliases, owned := make(map[string]alias), make(map[string][]address)
	for {
		header, err := parser.AnswerHeader()
		if err != nil {
			return aliases, owned
		}
		owner, ttl := key(header.Name), time.Duration(header.TTL)*time.Second
		if header.TTL > 1<<31-1 { // RFC 2181 §8: treat as 0
			ttl = 0
		}
		switch header.Type {
		case dnsmessage.TypeA:
			var record dnsmessage.AResource
			if record, err = parser.AResource(); err == nil {
				owned[owner] = append(owned[owner], address{netip.AddrFrom4(record.A), ttl})
			}
		case dnsmessage.TypeAAAA:
			var record dnsmessage.AAAAResource
			if record, err = parser.AAAAResource(); err == nil {
				owned[owner] = append(owned[owner], address{netip.AddrFrom16(record.AAAA), ttl})
			}
		case dnsmessage.TypeCNAME:
			var record dnsmessage.CNAMEResource
			if record, err = parser.CNAMEResource(); err == nil {
				aliases[owner] = alias{key(record.CNAME), ttl}
			}
		default:
			err = parser.SkipAnswer()
		}
		if err != nil {
			return aliases, owned
		}
	}
}

// key returns a name in the form in which records are compared: DNS names ignore case.
func key(name dnsmessage.Name) string { return strings.ToLower(name.String()) }
