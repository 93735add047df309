package policy

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestKinds(t *testing.T) {
	for device, want := range map[string]Kind{
		"wlan0": WiFi, "wlp3s0": WiFi, "swlan0": WiFi, "rmnet0": Cellular, "rmnet_data1": Cellular, "v4-rmnet_data0": Cellular,
		"ccmni0": Cellular, "wwan0": Cellular, "wwp0s20u4": Cellular, "eth0": Ethernet, "enp2s0": Ethernet, "lo": Other, "tun0": Other, "": Other,
	} {
		if got := KindOf(device); got != want {
			t.Errorf("%s: %s, want %s", device, got, want)
		}
	}
}

func TestUseOfPaths(t *testing.T) {
	cases := []struct {
		scheme string
		want   map[string]Use
	}{
		{"", map[string]Use{"wlan0": Active, "rmnet0": Active, "tun0": Active}},
		{"paths: wifi", map[string]Use{"wlan0": Active, "wlan1": Active, "rmnet0": Excluded, "tun0": Excluded}},
		{"paths: [wlan0, cellular]", map[string]Use{"wlan0": Active, "wlan1": Excluded, "rmnet0": Active}},
		{"backup: cellular", map[string]Use{"wlan0": Active, "eth0": Active, "rmnet0": Backup}},
		{"paths: wifi, backup: wlan1", map[string]Use{"wlan0": Active, "wlan1": Backup, "rmnet0": Excluded}},
		{"paths: wlan1, backup: wifi", map[string]Use{"wlan0": Backup, "wlan1": Active, "rmnet0": Excluded}},
	}
	for _, c := range cases {
		scheme := mustParse(t, withScheme(c.scheme)).Default().Scheme
		for device, want := range c.want {
			if got := scheme.Use(device); got != want {
				t.Errorf("%s: %s is %s, want %s", c.scheme, device, got, want)
			}
		}
	}
}

// TestLabels checks that labels follow the order in the file: named schemes, those in
// the rules, the default. Equal schemes share a label.
func TestLabels(t *testing.T) {
	p := mustParse(t, `policy: 1
schemes:
  b: {paths: wifi}
  unused: {paths: cellular}
  every: {}
  again: {paths: [wifi]}
rules:
  - {name: one, match: {port: 1}, action: {scheduler: single}}
  - {name: two, match: {port: 2}, action: again}
  - {name: three, match: {port: 3}, action: every}
default: {scheduler: single, paths: wifi}
`)
	var got []byte
	for _, rule := range p.every() {
		got = append(got, rule.Label)
	}
	if !bytes.Equal(got, []byte{3, 1, 0, 4}) {
		t.Errorf("labels of the rules: %v", got)
	}
	words := map[byte]string{}
	for label, scheme := range p.Table().All() {
		words[label] = scheme.String()
	}
	want := map[byte]string{1: "default over wifi", 2: "default over cellular", 3: "single over every path", 4: "single over wifi"}
	if !maps.Equal(words, want) {
		t.Errorf("%v, want %v", words, want)
	}
	if p.Rules()[1].SchemeName != "again" || p.Rules()[0].SchemeName != "" {
		t.Errorf("%+v", p.Rules())
	}
}

// randomScheme returns one of about 400 schemes.
func randomScheme(random *rand.Rand) *Scheme {
	s := &Scheme{Scheduler: schedulers()[random.IntN(len(schedulers()))]}
	names := []string{"wifi", "cellular", "wlan0", "rmnet0", "eth0"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		switch random.IntN(5) {
		case 0:
			s.Paths = append(s.Paths, name)
		case 1:
			s.Backup = append(s.Backup, name)
		}
	}
	return s
}

// TestLabelsOverManyReloads checks, for any number of changes: each scheme has exactly
// one label. A scheme in use keeps its label. An unused label keeps its meaning until
// another 255 - n schemes have come. The generation counts the changes. The same
// schemes in a new table get the same labels.
func TestLabelsOverManyReloads(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	var table *Table
	reused, given := false, map[byte]string{}
	for step := range 400 {
		var schemes []*Scheme
		for range random.IntN(40) {
			schemes = append(schemes, randomScheme(random))
		}
		next, err := tableOf(schemes, table)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[byte]string{}
		for _, scheme := range schemes {
			label, known := next.label(scheme)
			found, _ := next.Scheme(label)
			if !known || !found.equal(scheme) {
				t.Fatalf("step %d: %s has the label %d, which is %s", step, scheme, label, found)
			}
			if before, twice := labels[label]; twice && before != scheme.String() {
				t.Fatalf("step %d: label %d is %s and %s", step, label, before, scheme)
			}
			labels[label] = scheme.String()
			if table == nil {
				continue
			}
			if old, known := table.label(scheme); known && old != label {
				t.Fatalf("step %d: %s had the label %d and has %d", step, scheme, old, label)
			}
		}
		if size := next.size(); size > MaxTableSize {
			t.Fatalf("step %d: %d bytes", step, size)
		}
		if table != nil {
			changed := 0
			for label, scheme := range next.All() {
				if old, known := table.Scheme(label); !known || old != scheme {
					changed++
					before, again := given[label]
					reused, given[label] = reused || again && before != scheme.String(), scheme.String()
				}
			}
			if (changed > 0) != (next.Generation == table.Generation+1) || (changed == 0) != (next.Generation == table.Generation) {
				t.Fatalf("step %d: %d changed, generation %d after %d", step, changed, next.Generation, table.Generation)
			}
		}
		fresh, again := must(tableOf(schemes, nil)), must(tableOf(schemes, nil))
		if !bytes.Equal(must(fresh.MarshalBinary()), must(again.MarshalBinary())) {
			t.Fatalf("step %d: the same schemes, other labels", step)
		}
		table = next
	}
	if !reused {
		t.Error("no label was used again")
	}
}

// TestLabelsRunOut checks that when all labels are taken, the one that has been unused
// the longest is reassigned first.
func TestLabelsRunOut(t *testing.T) {
	scheme := func(i int) *Scheme { return &Scheme{Scheduler: "s", Paths: []string{fmt.Sprintf("e%d", i)}} }
	var all []*Scheme
	for i := range maxLabel {
		all = append(all, scheme(i+1))
	}
	table := must(tableOf(all, nil))
	without := func(labels ...int) []*Scheme {
		var rest []*Scheme
		for i, s := range all {
			if !slices.Contains(labels, i+1) {
				rest = append(rest, s)
			}
		}
		return rest
	}
	table = must(tableOf(without(200), table))
	table = must(tableOf(without(200, 100), table))
	for i, want := range []byte{200, 100} {
		extra := append(without(200, 100), scheme(1000), scheme(1001))
		table = must(tableOf(extra[:len(extra)-1+i], table))
		if label, _ := table.label(scheme(1000 + i)); label != want {
			t.Errorf("label %d, want %d", label, want)
		}
	}
	if _, err := tableOf(append(without(), scheme(1002)), table); err != errTooManySchemes {
		t.Error(err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// tableHex is the example in spec.md.
const tableHex = "01 00000007 02" +
	"01 06 73696e676c65 01 04 77696669 00" +
	"03 06 6d696e727474 02 04 77696669 06 726d6e657430 01 04 65746830"

func tableBytes(text string) []byte { return must(hex.DecodeString(strings.ReplaceAll(text, " ", ""))) }

func TestTableOnTheWire(t *testing.T) {
	table := &Table{Generation: 7}
	table.entries[1].scheme = &Scheme{Scheduler: "single", Paths: []string{"wifi"}}
	table.entries[3].scheme = &Scheme{Scheduler: "minrtt", Paths: []string{"wifi", "rmnet0"}, Backup: []string{"eth0"}}
	if got := must(table.MarshalBinary()); !bytes.Equal(got, tableBytes(tableHex)) {
		t.Errorf("%x", got)
	}
	back, err := ParseTable(tableBytes(tableHex))
	if err != nil || back.Generation != 7 || !back.entries[3].scheme.equal(table.entries[3].scheme) {
		t.Errorf("%+v, %v", back, err)
	}
	if _, known := back.Scheme(2); known {
		t.Error("label 2 is known")
	}
	if scheme, known := back.Scheme(0); !known || scheme.String() != "default over every path" {
		t.Error(scheme)
	}
}

// TestSpecification checks that spec.md has this example, the maximum size, and the
// prefixes of each kind.
func TestSpecification(t *testing.T) {
	spec := string(must(os.ReadFile("../spec.md")))
	wanted := []string{fmt.Sprintf("at most %d bytes", MaxTableSize)}
	for _, p := range prefixes {
		wanted = append(wanted, "`"+p.prefix+"`")
	}
	for _, text := range wanted {
		if !strings.Contains(spec, text) {
			t.Errorf("spec.md has no %s", text)
		}
	}
	if !strings.Contains(strings.ReplaceAll(spec, "\n", ""), tableHex) {
		t.Error("spec.md has another example")
	}
}

func TestBadTables(t *testing.T) {
	one := "01 06 73696e676c65 01 04 77696669 00"
	nine := "01 06 73696e676c65 09" + strings.Repeat("04 65746830", 9) + "00"
	cases := []struct{ data, want string }{
		{"", "cut short"},
		{"01 00000000", "cut short"},
		{"02 00000000 00", "version 2; known here: 1"},
		{"01 00000000 00 00", "1 bytes follow it"},
		{"01 00000000 01", "cut short"},
		{"01 00000000 01" + one[:len(one)-2], "cut short"},
		{"01 00000000 02" + one + one, "label 1 after 1"},
		{"01 00000000 02 02" + one[2:] + "01 06 6d696e727474 00 00", "label 1 after 2"},
		{"01 00000000 01 00" + one[2:], "label 0 after 0"},
		{"01 00000000 02" + one + "02" + one[2:], "label 2: the scheme of label 1 again"},
		{"01 00000000 01 01 07 64656661756c74 00 00", "label 1: the scheme of label 0 again"},
		{"01 00000000 01 01 00 00 00", "label 1: '' is no name of a scheduler"},
		{"01 00000000 01 01 01 41 00 00", "label 1: 'A' is no name of a scheduler"},
		{"01 00000000 01 01 21" + strings.Repeat("61", 33) + "00 00", "label 1: '" + strings.Repeat("a", 33) + "' is no name of a scheduler"},
		{"01 00000000 01 01 01 61 01 00 00", "label 1: '' is no name of a path"},
		{"01 00000000 01 01 01 61 01 02 6120 00", "label 1: 'a ' is no name of a path"},
		{"01 00000000 01 01 01 61 01 02 2e2e 00", "label 1: '..' is no name of a path"},
		{"01 00000000 01 01 01 61 01 01 62 01 01 62", "label 1: the path 'b' is given twice"},
		{"01 00000000 01" + nine, "label 1: more than 8 paths"},
		{"01" + strings.Repeat("00", MaxTableSize), fmt.Sprintf("%d bytes; %d at most", MaxTableSize+1, MaxTableSize)},
	}
	for _, c := range cases {
		table, err := ParseTable(tableBytes(c.data))
		if table != nil || err == nil || err.Error() != "table of schemes: "+c.want {
			t.Errorf("%.80s\n got: %v\nwant: table of schemes: %s", c.data, err, c.want)
		}
	}
}

// TestLargeTables checks that unused schemes make room for new ones, the oldest first,
// and that schemes in use do not.
func TestLargeTables(t *testing.T) {
	scheme := func(n int) *Scheme {
		s := &Scheme{Scheduler: strings.Repeat("s", maxScheduler)}
		for i := range maxPaths {
			s.Paths = append(s.Paths, fmt.Sprintf("%0*d-%d", maxInterface-2, n, i))
		}
		return s
	}
	const large = 1 + 1 + maxScheduler + 2 + maxPaths*(1+maxInterface) // bytes of one scheme
	const fitting = (MaxTableSize - tableHeader) / large
	var schemes []*Scheme
	for i := range fitting + 1 {
		schemes = append(schemes, scheme(i))
	}
	table := must(tableOf(schemes[:fitting], nil))
	if back, err := ParseTable(must(table.MarshalBinary())); err != nil || !back.entries[fitting].scheme.equal(schemes[fitting-1]) {
		t.Error(err)
	}
	want := fmt.Sprintf("the schemes take %d bytes; there is room for %d", tableHeader+(fitting+1)*large, MaxTableSize)
	if _, err := tableOf(schemes, table); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	table = must(tableOf(schemes[2:fitting], table)) // schemes 0 and 1 become unused
	table = must(tableOf(schemes[2:], table))
	for i, s := range schemes {
		if _, known := table.label(s); known != (i > 0) {
			t.Errorf("scheme %d: %v", i, known)
		}
	}
}

func TestTablesThereAndBack(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 50 {
		var schemes []*Scheme
		for range random.IntN(20) {
			schemes = append(schemes, randomScheme(random))
		}
		table := must(tableOf(schemes, nil))
		data := must(table.MarshalBinary())
		back, err := ParseTable(data)
		if err != nil {
			t.Fatal(err)
		}
		for label := range maxLabel + 1 {
			a, known := table.Scheme(byte(label))
			b, arrived := back.Scheme(byte(label))
			if known != arrived || known && !a.equal(b) {
				t.Fatalf("label %d: %v sent, %v arrived", label, a, b)
			}
		}
		for cut := range len(data) {
			if _, err := ParseTable(data[:cut]); err == nil {
				t.Fatalf("%d of %d bytes are a table", cut, len(data))
			}
		}
	}
}

// FuzzParseTable: an accepted encoding is the one that AppendBinary makes of the table.
func FuzzParseTable(f *testing.F) {
	f.Add(tableBytes(tableHex))
	f.Add(tableBytes("01 00000000 00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ParseTable(data)
		if err != nil {
			return
		}
		if again := must(table.MarshalBinary()); !bytes.Equal(again, data) {
			t.Errorf("%x is sent as %x", data, again)
		}
	})
}
