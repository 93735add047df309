package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// blocking returns a file that blocks one port.
func blocking(port int) string {
	return fmt.Sprintf(head+"rules:\n- {name: port %d, match: {port: %d}, action: block}\ndefault: {paths: eth%d}\n", port, port, port)
}

func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if _, err := Open(file, Options{}); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	write(t, file, "rules: []\n")
	if _, err := Open(file, Options{}); err == nil || !strings.HasPrefix(err.Error(), file+":1: key 'policy' is missing\n") {
		t.Errorf("a bad file: %v", err)
	}
	write(t, file, blocking(1))
	e, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, c := &Flow{}, &Conditions{}
	before := e.Decide(f, c)

	write(t, file, blocking(2)[:40])
	if err := e.Reload(); err == nil {
		t.Error("half a file was taken")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(); !os.IsNotExist(err) {
		t.Error(err)
	}
	if after := e.Decide(f, c); after != before {
		t.Errorf("after a bad file: %s, before %s", after.Why(), before.Why())
	}

	write(t, file, blocking(2))
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	after := e.Decide(f, c)
	if before.Scheme.String() != "default over eth1" || after.Scheme.String() != "default over eth2" {
		t.Errorf("%s, then %s", before.Scheme, after.Scheme)
	}
	table := e.Policy().Table()
	for _, d := range []Decision{before, after} {
		if scheme, _ := table.Scheme(d.Label); scheme != d.Scheme {
			t.Errorf("label %d is %s, was %s", d.Label, scheme, d.Scheme)
		}
	}
	if table.Generation != 2 {
		t.Errorf("generation %d", table.Generation)
	}
	if e := e.Explain(f, c); len(e.Rules) != 1 || e.Rules[0].Why != "port unknown, not 2" {
		t.Errorf("%+v", e)
	}
}

// TestReloadInParallel checks that, while the file changes between two valid versions
// and an invalid one, each decision uses one of the valid ones completely, and labels
// keep their schemes.
func TestReloadInParallel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, blocking(0+1))
	e, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			f, c := &Flow{}, &Conditions{}
			for {
				select {
				case <-stop:
					return
				default:
				}
				d := e.Decide(f, c)
				want := fmt.Sprintf("default over eth%d", d.Label)
				if scheme, known := e.Policy().Table().Scheme(d.Label); !known || scheme.String() != want || d.Scheme.String() != want {
					t.Errorf("label %d: %s, in the table %s", d.Label, d.Scheme, scheme)
					return
				}
			}
		})
	}
	bad := 0
	for i := range 300 {
		text := []string{blocking(1), blocking(2), "rules: []\n"}[i%3]
		next := filepath.Join(filepath.Dir(file), "next")
		write(t, next, text)
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
		if err := e.Reload(); err != nil {
			bad++
		}
	}
	close(stop)
	wait.Wait()
	if bad != 100 {
		t.Errorf("%d bad files", bad)
	}
}
