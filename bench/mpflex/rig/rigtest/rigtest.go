package rigtest

import (
	"fmt"
	"os"
	"testing"

	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
)

// unavailable is the reason why this machine cannot run a rig, or nil.
var unavailable error

// Main is the TestMain of a package whose tests need a rig. It runs the tests again in private namespaces. If the
// machine does not permit these, the tests run here, and Need skips them.
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

// Need skips a test, with the reason, if the machine cannot run a rig.
func Need(t *testing.T) {
	t.Helper()
	if unavailable != nil {
		t.Skip(unavailable)
	}
}
