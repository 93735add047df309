package conditions

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzPlanFile: any state file is refused or can be used for counting.
func FuzzPlanFile(f *testing.F) {
	f.Add([]byte(`{"period":"2026-11-15","boot":"b","interfaces":{"rmnet0":{"used":9,"index":3,"last":7}}}`))
	f.Add([]byte(`{"interfaces":{"x":null}}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "plan.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := NewPlan(PlanConfig{State: path})
		if err := p.load(); err != nil {
			return
		}
		p.state.turn(time.Unix(1_700_000_000, 0), 1, map[string]device{"rmnet0": {3, 10}})
		p.state.add("another boot", map[string]device{"rmnet0": {3, 10}, "wlan0": {2, 1 << 63}})
		if err := p.state.check(); err != nil {
			t.Error(err)
		}
	})
}
