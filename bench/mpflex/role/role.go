package role

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"mplab/bench/mpflex/holder"
	"mplab/bench/mpflex/muxed"
	"mplab/bench/mpflex/origin"
	linkem "mplab/linkem/cli"
	"mplab/mpflex/cli"
)

// Role is a program that this binary can run as. All roles print a line when they are ready, and end on SIGTERM.
type Role string

// Roles with their arguments.
const (
	Linkem      Role = "linkem"       // arguments of linkem
	MPFlex      Role = "mpflex"       // arguments of mpflex
	Origin      Role = "origin"       // a JSON list of origin.Listener
	MuxedClient Role = "muxed-client" // a muxed.Config in JSON
	MuxedServer Role = "muxed-server" // a muxed.Config in JSON
	Holder      Role = "holder"       // an address in JSON
)

const variable = "MPFLEX_BENCH_ROLE"

// Ready is the ready line of the roles in this package.
const Ready = `{"event":"ready"}`

// Command returns a command that runs a role.
func Command(r Role, args ...string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", args...)
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), variable+"="+string(r))
	return command
}

// Play runs the role that this process was started for, and returns its exit code. played is false if the process has
// no role. A main function, and the TestMain of tests that use roles, must call it first.
func Play() (code int, played bool) {
	r := Role(os.Getenv(variable))
	if r == "" {
		return 0, false
	}
	_ = os.Unsetenv(variable)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch r {
	case Linkem:
		return linkem.Main(os.Args[1:], os.Stdout, os.Stderr), true
	case MPFlex:
		return cli.Execute(ctx, os.Args[1:]), true
	}
	if err := own(ctx, r); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", r, err)
		return 1, true
	}
	return 0, true
}

// own runs the roles that only the benchmark has.
func own(ctx context.Context, r Role) error {
	if len(os.Args) != 2 {
		return errors.New("one argument is needed")
	}
	ready := func() { fmt.Println(Ready) }
	switch r {
	case Origin:
		listeners, err := decode[[]origin.Listener](os.Args[1])
		if err != nil {
			return err
		}
		return origin.Serve(ctx, listeners, ready)
	case Holder:
		address, err := decode[string](os.Args[1])
		if err != nil {
			return err
		}
		return holder.Serve(ctx, address, ready)
	case MuxedClient:
		config, err := decode[muxed.Config](os.Args[1])
		if err != nil {
			return err
		}
		client, err := muxed.NewClient(ctx, config)
		if err != nil {
			return err
		}
		ready()
		client.Run(ctx)
		return nil
	case MuxedServer:
		config, err := decode[muxed.Config](os.Args[1])
		if err != nil {
			return err
		}
		server, err := muxed.NewServer(config)
		if err != nil {
			return err
		}
		ready()
		server.Run(ctx)
		return nil
	}
	return errors.New("unknown role")
}

func decode[T any](text string) (value T, err error) {
	err = json.Unmarshal([]byte(text), &value)
	return value, err
}

// Encode returns a value as an argument.
func Encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // every configuration here can be encoded
	}
	return string(text)
}
