package flood

import (
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/tables"
)

// TestFlowsAreWhatTheirKindSays: each flow is a separate connection with the
// handshake, close and data of its kind.
func TestFlowsAreWhatTheirKindSays(t *testing.T) {
	const flows = 300
	type facts struct {
		kind, closed string
		version      int32
		established  bool
		up           int64
	}
	want := map[string]facts{
		"syn":        {"tcp", "open", -1, false, 0},
		"capable-v1": {"mptcp", "open", 1, false, 0},
		"capable-v0": {"mptcp", "open", 0, false, 0},
		"join":       {"mptcp", "open", -1, false, 0},
		"refused":    {"tcp", "rst", -1, false, 0},
		"data":       {"tcp", "open", -1, true, size},
		"closed":     {"tcp", "fin", -1, true, size},
		"tcp":        {"tcp", "open", -1, true, size},
		"mptcp":      {"mptcp", "open", 1, true, size},
	}
	if len(want) != len(Kinds) {
		t.Errorf("%d kinds are tested, there are %d", len(want), len(Kinds))
	}
	for _, k := range Kinds {
		r := analysed(t, k, flows*k.PerFlow())
		unknown := int64(0)
		if k.Name == "join" {
			unknown = flows
		}
		if len(r.Connections) != flows || r.Files[0].TCP != flows*k.PerFlow() || r.Warnings != (tables.Warnings{JoinUnknownToken: unknown}) {
			t.Errorf("%s: %d connections, %+v, %+v", k.Name, len(r.Connections), r.Files, r.Warnings)
			continue
		}
		for i, c := range r.Connections {
			got := facts{c.Kind, c.Closed, c.MPTCPVersion, r.Subflows[i].Established, c.BytesUp}
			if got != want[k.Name] || c.BytesDown != 0 || c.ServerPort != int32(server.port) {
				t.Errorf("%s: %+v, want %+v", k.Name, got, want[k.Name])
				break
			}
		}
	}
}

func analysed(t *testing.T, k Kind, packets int64) *tables.Result {
	t.Helper()
	name := filepath.Join(t.TempDir(), k.Name+".pcap")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := k.Write(out, packets, 1000); err != nil {
		t.Fatal(err)
	}
	r, err := mptrace.Analyse([]string{name}, mptrace.Options{Keep: tables.TableConnections | tables.TableSubflows})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFind(t *testing.T) {
	if k, ok := Find("join"); !ok || k.Name != "join" || k.PerFlow() != 1 {
		t.Errorf("%+v, %v", k, ok)
	}
	if _, ok := Find("none"); ok {
		t.Error("a flood called none was found")
	}
}
