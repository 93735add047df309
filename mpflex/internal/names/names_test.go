package names

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNormalize(t *testing.T) {
	long := strings.Repeat("a", 63)
	cases := []struct{ text, want string }{ // want "": refused
		{"example.org", "example.org"},
		{"WWW.Example.ORG.", "www.example.org"},
		{"localhost", "localhost"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"_dmarc.example.org", "_dmarc.example.org"},
		{"1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa"},
		{"4.example.4", "4.example.4"},
		{long + ".org", long + ".org"},
		{strings.Join([]string{long, long, long, long[:61]}, "."), strings.Join([]string{long, long, long, long[:61]}, ".")},
		{strings.Join([]string{long, long, long, long[:62]}, "."), ""},
		{long + "a.org", ""},
		{"", ""},
		{".", ""},
		{".org", ""},
		{"a..b", ""},
		{"a.b..", ""},
		{"bücher.example", ""},
		{"a b.org", ""},
		{"a.org\x00", ""},
		{"*.example.org", ""},
		{"192.0.2.7", ""},
		{"2001:db8::1", ""},
	}
	for _, c := range cases {
		got, ok := Normalize(c.text)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.text, got, ok, c.want)
		}
	}
	lower := "www.example.org"
	if n := testing.AllocsPerRun(100, func() { _, _ = Normalize(lower) }); n != 0 {
		t.Errorf("%v allocations for a name in lower case", n)
	}
}

func TestTimesToLive(t *testing.T) {
	cases := []struct {
		ttl, believed time.Duration
	}{{0, time.Minute}, {time.Second, time.Minute}, {5 * time.Minute, 5 * time.Minute}, {1000 * time.Hour, 24 * time.Hour}}
	for _, c := range cases {
		cache, addr := NewCache(8), netip.MustParseAddr("192.0.2.1")
		cache.Add("Example.org.", addr, c.ttl, start)
		if got := cache.Lookup(addr, start.Add(c.believed-1)); got != "example.org" {
			t.Errorf("ttl %s: %q just before its end", c.ttl, got)
		}
		if got := cache.Lookup(addr, start.Add(c.believed)); got != "" || cache.Len() != 0 {
			t.Errorf("ttl %s: %q and %d entries at its end", c.ttl, got, cache.Len())
		}
	}
}

func TestAddressesAreOneInTheirForms(t *testing.T) {
	cache := NewCache(8)
	cache.Add("four.example", netip.MustParseAddr("::ffff:192.0.2.1"), time.Hour, start)
	cache.Add("six.example", netip.MustParseAddr("fe80::1%wlan0"), time.Hour, start)
	cache.Add("not a name", netip.MustParseAddr("192.0.2.9"), time.Hour, start)
	cache.Add("nowhere.example", netip.Addr{}, time.Hour, start)
	if cache.Lookup(netip.MustParseAddr("192.0.2.1"), start) != "four.example" ||
		cache.Lookup(netip.MustParseAddr("fe80::1"), start) != "six.example" || cache.Len() != 2 {
		t.Error("an address is not found in its other form, or too much was learned")
	}
}

// TestCacheAgainstModel compares with a simple model: the cache holds the last `limit`
// learned addresses, each with its last name, until they expire.
func TestCacheAgainstModel(t *testing.T) {
	const limit = 16
	random := rand.New(rand.NewPCG(1, 2))
	cache, now := NewCache(limit), start
	type learned struct {
		addr    netip.Addr
		name    string
		expires time.Time
	}
	var model []learned // the oldest first
	for i := range 20000 {
		now = now.Add(time.Duration(random.IntN(20)) * time.Second)
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(40))})
		if random.IntN(2) == 0 {
			name, ttl := fmt.Sprintf("n%d.example", i), time.Duration(60+random.IntN(600))*time.Second
			cache.Add(name, addr, ttl, now)
			kept := model[:0]
			for _, l := range model {
				if l.addr != addr {
					kept = append(kept, l)
				}
			}
			model = append(kept, learned{addr, name, now.Add(ttl)})
			if len(model) > limit {
				model = model[1:]
			}
			continue
		}
		want := ""
		for j, l := range model {
			if l.addr == addr {
				if want = l.name; !now.Before(l.expires) {
					want = ""
					model = append(model[:j], model[j+1:]...)
				}
				break
			}
		}
		if got := cache.Lookup(addr, now); got != want || cache.Len() != len(model) {
			t.Fatalf("step %d, %s: %q of %d entries, want %q of %d", i, addr, got, cache.Len(), want, len(model))
		}
	}
}

func TestCacheInParallel(t *testing.T) {
	cache := NewCache(64)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 2000 {
				addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i * 7)})
				cache.Add(fmt.Sprintf("n%d.example", byte(i*7)), addr, time.Hour, start)
				if got := cache.Lookup(addr, start); got != "" && got != fmt.Sprintf("n%d.example", byte(i*7)) {
					t.Errorf("worker %d: %s is %q", worker, addr, got)
				}
			}
		})
	}
	wait.Wait()
	if cache.Len() != 64 {
		t.Errorf("%d entries", cache.Len())
	}
}

// answer builds the answer to a question. Each record is "owner type value ttl".
func answer(t testing.TB, asked string, code dnsmessage.RCode, response bool, records ...string) []byte {
	t.Helper()
	name := func(text string) dnsmessage.Name { return dnsmessage.MustNewName(text) }
	builder := dnsmessage.NewBuilder(nil, dnsmessage.Header{Response: response, RCode: code})
	builder.EnableCompression()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(builder.StartQuestions())
	must(builder.Question(dnsmessage.Question{Name: name(asked), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}))
	must(builder.StartAnswers())
	for _, text := range records {
		var owner, kind, value string
		var ttl uint32
		if _, err := fmt.Sscan(text, &owner, &kind, &value, &ttl); err != nil {
			t.Fatal(err)
		}
		header := dnsmessage.ResourceHeader{Name: name(owner), Class: dnsmessage.ClassINET, TTL: ttl}
		switch kind {
		case "A":
			must(builder.AResource(header, dnsmessage.AResource{A: netip.MustParseAddr(value).As4()}))
		case "AAAA":
			must(builder.AAAAResource(header, dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(value).As16()}))
		case "CNAME":
			must(builder.CNAMEResource(header, dnsmessage.CNAMEResource{CNAME: name(value)}))
		case "TXT":
			must(builder.TXTResource(header, dnsmessage.TXTResource{TXT: []string{value}}))
		}
	}
	message, err := builder.Finish()
	must(err)
	return message
}

func TestLearn(t *testing.T) {
	cases := []struct {
		about   string
		message []byte
		want    map[string]string // address → name
		until   time.Duration     // when the first of them expires; 0: not checked
	}{
		{"one address", answer(t, "www.Example.org.", 0, true, "www.example.ORG. A 192.0.2.1 300"),
			map[string]string{"192.0.2.1": "www.example.org"}, 300 * time.Second},
		{"both families, other records", answer(t, "x.example.", 0, true,
			"x.example. TXT hello 60", "x.example. AAAA 2001:db8::1 600", "x.example. A 192.0.2.1 300"),
			map[string]string{"192.0.2.1": "x.example", "2001:db8::1": "x.example"}, 300 * time.Second},
		{"aliases in any order, the smallest time to live", answer(t, "www.shop.example.", 0, true,
			"edge.cdn.example. A 192.0.2.2 900", "shop.cdn.example. CNAME edge.cdn.example. 120", "www.shop.example. CNAME shop.cdn.example. 3600"),
			map[string]string{"192.0.2.2": "www.shop.example"}, 120 * time.Second},
		{"a ring of aliases", answer(t, "a.example.", 0, true,
			"a.example. CNAME b.example. 60", "b.example. CNAME a.example. 60"), map[string]string{}, 0},
		{"an address of another name", answer(t, "a.example.", 0, true, "b.example. A 192.0.2.3 60"),
			map[string]string{"192.0.2.3": ""}, 0},
		{"a time to live beyond 2^31 is 0", answer(t, "a.example.", 0, true, "a.example. A 192.0.2.3 4294967295"),
			map[string]string{"192.0.2.3": "a.example"}, time.Minute},
		{"NXDOMAIN", answer(t, "a.example.", dnsmessage.RCodeNameError, true, "a.example. A 192.0.2.3 60"), map[string]string{"192.0.2.3": ""}, 0},
		{"a query", answer(t, "a.example.", 0, false, "a.example. A 192.0.2.3 60"), map[string]string{"192.0.2.3": ""}, 0},
		{"nothing", nil, map[string]string{}, 0},
	}
	for _, c := range cases {
		cache, known := NewCache(64), 0
		learned := cache.Learn(c.message, start)
		for addr, name := range c.want {
			if got := cache.Lookup(netip.MustParseAddr(addr), start); got != name {
				t.Errorf("%s: %s is %q, want %q", c.about, addr, got, name)
			}
			if name != "" {
				known++
			}
		}
		if learned != known || cache.Len() != known {
			t.Errorf("%s: %d learned, %d kept, want %d", c.about, learned, cache.Len(), known)
		}
		if c.until == 0 {
			continue
		}
		left := 0
		for addr := range c.want {
			if cache.Lookup(netip.MustParseAddr(addr), start.Add(c.until)) != "" {
				left++
			}
		}
		if left != known-1 {
			t.Errorf("%s: %d left after %s, want %d", c.about, left, c.until, known-1)
		}
	}
}

// TestHosts: a name has its first address for the lowest time to live of the records
// that lead to it, in whatever form it is looked up.
func TestHosts(t *testing.T) {
	www := answer(t, "www.shop.example.", 0, true, "www.shop.example. CNAME edge.example. 30", "edge.example. A 192.0.2.2 900", "edge.example. A 192.0.2.3 900")
	for _, c := range []struct {
		about    string
		message  []byte
		name     string
		addr     string // "": no address
		believed time.Duration
	}{
		{"the first address, the smallest time to live", www, "WWW.shop.example.", "192.0.2.2", 30 * time.Second},
		{"not to be kept", answer(t, "a.example.", 0, true, "a.example. A 192.0.2.3 0"), "a.example", "192.0.2.3", 0},
		{"a time to live beyond 2^31 is 0", answer(t, "a.example.", 0, true, "a.example. A 192.0.2.3 4294967295"), "a.example", "192.0.2.3", 0},
		{"a day at most", answer(t, "a.example.", 0, true, "a.example. AAAA 2001:db8::1 2000000"), "a.example", "2001:db8::1", 24 * time.Hour},
		{"another name", answer(t, "a.example.", 0, true, "b.example. A 192.0.2.3 60"), "b.example", "", 0},
		{"an error", answer(t, "a.example.", dnsmessage.RCodeNameError, true), "a.example", "", 0},
		{"nothing", nil, "", "", 0},
	} {
		hosts := NewHosts(8)
		learned, ok := hosts.Learn(c.message, start)
		if ok != (c.addr != "") || ok && learned.String() != c.addr {
			t.Errorf("%s: learned %s, %v", c.about, learned, ok)
		}
		got, known := hosts.Lookup(c.name, start.Add(c.believed-1))
		if known != (c.believed > 0) || known && got != learned {
			t.Errorf("%s: %s, %v just before its end", c.about, got, known)
		}
		if got, known := hosts.Lookup(c.name, start.Add(c.believed)); known {
			t.Errorf("%s: %s at its end", c.about, got)
		}
	}
}

// TestLearnFromCutAnswers checks that a truncated answer teaches a subset of the
// addresses in the complete one.
func TestLearnFromCutAnswers(t *testing.T) {
	message := answer(t, "www.shop.example.", 0, true, "www.shop.example. CNAME edge.example. 300",
		"edge.example. A 192.0.2.1 300", "edge.example. AAAA 2001:db8::1 300")
	most := 0
	for size := range len(message) + 1 {
		cache := NewCache(64)
		n := cache.Learn(message[:size], start)
		if n < most || n != cache.Len() {
			t.Errorf("%d bytes teach %d addresses, fewer teach %d", size, n, most)
		}
		most = n
	}
	if most != 2 {
		t.Errorf("the whole answer teaches %d addresses", most)
	}
}

func FuzzLearn(f *testing.F) {
	f.Add([]byte{})
	f.Add(answer(f, "www.shop.example.", 0, true, "www.shop.example. CNAME edge.example. 300", "edge.example. A 192.0.2.1 300"))
	f.Add(answer(f, "a.example.", 0, true, "a.example. CNAME b.example. 60", "b.example. CNAME a.example. 60"))
	f.Fuzz(func(t *testing.T, message []byte) {
		cache := NewCache(4)
		cache.Learn(message, start)
		if cache.Len() > 4 {
			t.Errorf("%d entries", cache.Len())
		}
	})
}
