package source

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mplab/internal/ifaces"
	"mplab/phonelog/internal/logger/record"
)

// insideVariable is set in a test binary that runs itself again in a separate network
// namespace, for tests with interfaces, if the machine permits one.
const insideVariable = "SOURCE_TEST_INSIDE"

func unshareArgs() []string {
	args := []string{"--net", "--mount", "--fork", "--kill-child"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	return args
}

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" || exec.Command("unshare", append(unshareArgs(), "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")...).Run() != nil {
		os.Exit(m.Run())
	}
	cmd := exec.Command("unshare", append(append(unshareArgs(), os.Args[0]), os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
	os.Exit(cmd.ProcessState.ExitCode())
}

func ip(t *testing.T, lines ...string) {
	t.Helper()
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestNetwork(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		t.Skip("interfaces in a network namespace are not permitted here")
	}
	set, err := ifaces.Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := NewNetwork(set, nil)
	last := ""
	// expect runs lines of ip(8) and waits until the network is as described.
	expect := func(want string, lines ...string) {
		t.Helper()
		ip(t, lines...)
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			states, from, err := n.Read(t.Context())
			if err != nil || from != "netlink" {
				t.Fatalf("%s, %v", from, err)
			}
			if last = text(states); last == want {
				return
			}
			select {
			case <-set.Noticed():
			case <-time.After(time.Second):
			}
		}
		t.Fatalf("%s\ngot  %s\nwant %s", strings.Join(lines, "; "), last, want)
	}
	expect("routes []")
	expect("wlan0 down false false; wlan9 down false false; routes []", "link add wlan0 type veth peer name wlan9")
	expect("wlan0 up true false; wlan9 up true false; routes []", "link set wlan0 up addrgenmode none", "link set wlan9 up addrgenmode none")
	expect("wlan0 up true true 10.7.0.2/24; wlan9 up true false; routes []", "addr add 10.7.0.2/24 dev wlan0")
	expect("wlan0 up true true 10.7.0.2/24 v4; wlan9 up true false; routes [{4 254 wlan0 10.7.0.1 600 unicast}]", "route add default via 10.7.0.1 dev wlan0 metric 600")
	// Properties that package ifaces does not distinguish.
	expect("wlan0 up true true 10.7.0.2/24 v4; wlan9 up true false; routes [{4 254 wlan0 10.7.0.3 600 unicast}]", "route replace default via 10.7.0.3 dev wlan0 metric 600")
	expect("wlan0 up true true 10.7.0.2/24 v4; wlan9 up true false; routes [{4 254 wlan0 10.7.0.3 600 unicast} {4 1002 wlan0 10.7.0.1 0 unicast} {4 1003   0 unreachable}]",
		"route add default via 10.7.0.1 dev wlan0 table 1002", "route add unreachable default table 1003")
	expect("wlan0 lower-layer-down false false 10.7.0.2/24; wlan9 down false false; routes [{4 254 wlan0 10.7.0.3 600 unicast} {4 1002 wlan0 10.7.0.1 0 unicast} {4 1003   0 unreachable}]",
		"link set wlan9 down")
	expect("gone wlan0; gone wlan9; routes [{4 1003   0 unreachable}]", "link del wlan0")
	expect("routes []", "route flush table 1003")
}

// text formats the states. It omits IPv6 routes, because the kernel adds an
// unreachable one if there is no default route.
func text(states []record.State) string {
	var all []string
	for _, s := range states {
		switch s := s.(type) {
		case *record.Interface:
			if !s.Present {
				all = append(all, "gone "+s.Name)
				continue
			}
			line := fmt.Sprint(s.Name, " ", s.State, " ", *s.Running, " ", s.Usable)
			for _, a := range s.Addresses {
				line += " " + a
			}
			if s.DefaultIPv4 {
				line += " v4"
			}
			all = append(all, line)
		case *record.Routes:
			var of4 []record.Route
			for _, r := range s.Routes {
				if r.Family == 4 {
					of4 = append(of4, r)
				}
			}
			all = append(all, fmt.Sprint("routes ", of4))
		}
	}
	return strings.Join(all, "; ")
}
