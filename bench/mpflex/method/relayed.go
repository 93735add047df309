package method

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"mplab/bench/mpflex/muxed"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
)

// relayed consists of a client on the phone, which accepts the application's redirected connections, and a server on
// the proxy.
type relayed struct {
	place
	start      func() (server, client *rig.Program, err error)
	redirected bool
	server     *rig.Program
	client     *rig.Program
}

// Start implements Method.
func (r *relayed) Start(context.Context) error {
	if !r.redirected {
		if err := r.rig.Redirect(r.origin().Port(), r.redirect().Port()); err != nil {
			return err
		}
		r.redirected = true
	}
	var err error
	if r.server, r.client, err = r.start(); err != nil {
		return errors.Join(err, r.Stop())
	}
	return nil
}

// Dial implements Method.
func (r *relayed) Dial(ctx context.Context) (net.Conn, error) { return application(ctx, r.place) }

// Proof implements Method.
func (r *relayed) Proof(net.Conn) (Proof, error) {
	proof, err := r.prove(r.rig.Proxy, r.proxy())
	for _, p := range []*rig.Program{r.server, r.client} {
		if ended := p.Ended(); ended != nil {
			proof.Program = ended.Error()
		}
	}
	return proof, err
}

// Stop implements Method.
func (r *relayed) Stop() error {
	err := rig.StopAll(r.client, r.server)
	r.server, r.client = nil, nil
	return err
}

// yamux returns a method of package muxed. c selects the kind of connection; p determines the addresses.
func yamux(p place, c muxed.Config) Method {
	c.Congestion = p.congestion
	return &relayed{place: p, start: func() (server, client *rig.Program, err error) {
		there := c
		there.Listen, there.Device = p.proxy(), ""
		server, err = p.rig.Proxy.Start(role.MuxedServer, role.Encode(there))
		if err != nil {
			return nil, nil, err
		}
		here := c
		here.Listen, here.Server = p.redirect(), p.proxy()
		client, err = p.rig.Phone.Start(role.MuxedClient, role.Encode(here))
		return server, client, err
	}}
}

// exitBadInput is mpflex's exit code for an invalid configuration.
const exitBadInput = 2

// agentAndProxy returns the method with the programs `mpflex agent` and `mpflex proxy` and a transport. If they do not
// know the transport, the method is absent.
func agentAndProxy(p place, transport string) Method {
	return &relayed{place: p, start: func() (server, client *rig.Program, err error) {
		files, err := p.configure(transport)
		if err != nil {
			return nil, nil, err
		}
		if server, err = p.rig.Proxy.Start(role.MPFlex, "proxy", "--config", files.proxy); err == nil {
			client, err = p.rig.Phone.Start(role.MPFlex, "agent", "--config", files.agent)
		}
		var exit *rig.ExitError
		if errors.As(err, &exit) && exit.Code == exitBadInput {
			err = fmt.Errorf("%w: agent and proxy refuse the transport (%s)", ErrAbsent, strings.ReplaceAll(exit.Stderr, files.dir+"/", ""))
		}
		return server, client, err
	}}
}

type configFiles struct{ dir, proxy, agent string }

// configure writes the configuration files of agent and proxy, and their secret.
func (p place) configure(transport string) (configFiles, error) {
	listener := transport
	agent := map[string]any{
		"listen": map[string]netip.AddrPort{"redirect": p.redirect()}, "proxy": p.proxy(), "congestion_control": p.congestion,
	}
	if transport == transportMPFlex || transport == transportPlain {
		agent["paths"] = []map[string]string{{"device": rig.WiFi}, {"device": rig.LTE}}
		if transport == transportPlain {
			transport = transportMPFlex
			agent["plain"] = true
		}
	}
	agent["transport"] = transport
	dir := filepath.Join(p.rig.Dir(), fmt.Sprintf("%s-%d", listener, p.index))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return configFiles{}, err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	files := configFiles{dir, in("proxy.json"), in("agent.json")}
	agent["secret_file"] = in("secret")
	return files, errors.Join(
		os.WriteFile(in("secret"), []byte("the secret of a benchmark, and of nothing else\n"), 0o600),
		writeJSON(files.proxy, map[string]any{
			"listen":      map[string]netip.AddrPort{listener: p.proxy()},
			"secret_file": in("secret"), "allow": []string{rig.Origin.String() + "/32:*"}, "congestion_control": p.congestion,
		}),
		writeJSON(files.agent, agent),
	)
}

func writeJSON(file string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
