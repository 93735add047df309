package config

import (
	"errors"
	"fmt"

	"mplab/internal/secretfile"
	"mplab/mpflex/internal/transport/identity"
)

// Default limits of one client.
const (
	DefaultClientSessions   = 16
	DefaultClientStreams    = 16384 // of all its sessions
	DefaultClientUDPSockets = 512
)

// ProxyPerClient bounds the resources of one client, so that it cannot affect the
// others. 0 selects the default.
type ProxyPerClient struct {
	// Connections counts carrying connections and paths. Default: max_connections with
	// secret_file, a quarter of it with clients_dir.
	Connections int `json:"connections"`
	Sessions    int `json:"sessions"`
	Streams     int `json:"streams"` // of all its sessions; default: session.max_streams
	UDPSockets  int `json:"udp_sockets"`
}

// ReadClients reads the clients of the proxy: the unnamed client of secret_file, or
// those of clients_dir. The error names the key.
func (c *Proxy) ReadClients() ([]identity.Credential, error) {
	if c.ClientsDir == "" {
		secret, err := readSecret(c.SecretFile)
		if err != nil {
			return nil, err
		}
		if c.Listen.MPFlex.IsValid() && len(secret) < identity.MinSecret {
			return nil, fmt.Errorf("secret_file: %s holds %d bytes; listen.mpflex needs %d, drawn at random", c.SecretFile, len(secret), identity.MinSecret)
		}
		return []identity.Credential{{Secret: secret}}, nil
	}
	clients, err := identity.ReadClients(c.ClientsDir)
	if err != nil {
		return nil, fmt.Errorf("clients_dir: %w", err)
	}
	return clients, nil
}

// readSecret reads the secret from the file of the key secret_file.
func readSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("secret_file: missing; give the file with the secret that agent and proxy share")
	}
	secret, err := secretfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	return secret, nil
}

func (c *Proxy) checkClients() error {
	switch {
	case c.SecretFile == "" && c.ClientsDir == "":
		return errors.New("secret_file, clients_dir: missing; give the file with the secret that agent and proxy share, or the directory with such a file for each client")
	case c.SecretFile != "" && c.ClientsDir != "":
		return errors.New("secret_file, clients_dir: both are given; give one of them")
	}
	return nil
}

// checkPerClient checks the limits and fills in the defaults.
func (c *Proxy) checkPerClient() error {
	connections, streams := c.MaxConnections, c.Session.Config().MaxStreams
	if c.ClientsDir != "" {
		connections = max(1, connections/4)
	}
	if streams == 0 {
		streams = DefaultClientStreams
	}
	p := &c.PerClient
	for _, v := range []struct {
		key       string
		value     *int
		otherwise int
	}{
		{"connections", &p.Connections, connections},
		{"sessions", &p.Sessions, DefaultClientSessions},
		{"streams", &p.Streams, streams},
		{"udp_sockets", &p.UDPSockets, DefaultClientUDPSockets},
	} {
		if *v.value < 0 {
			return fmt.Errorf("per_client.%s: %d is negative", v.key, *v.value)
		}
		if *v.value == 0 {
			*v.value = v.otherwise
		}
	}
	return nil
}
