package rigtest

import (
	"fmt"
	"os"
	"testing"

	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
)

// unavailable is why there can be no rig, nil when there can.
var unavailable error

// Main is the TestMain of a package whose tests need a rig. They run again in private namespaces; where the machine
// does not permit these they run here, and Need skips.
func Main(m *testing.M) {
	if code, played := role.Play(); played {
		os.Exit(code)
	}
	inside, err := rig.Inside()
	if err == nil && !inside {
		if unavailable = rig.Unavailable(); unavailable == nil {
			var code int
			if code, err = rig.Enter(); err == nil {
				os.Exit(code)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Need skips a test, with the reason, where there can be no rig.
func Need(t *testing.T) {
	t.Helper()
	if unavailable != nil {
		t.Skip(unavailable)
	}
}
