package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"mplab/mpflex/wire"
)

// Credential is a secret and the proxy's name for its holder.
type Credential struct {
	Name   string
	Secret []byte
}

// Proxy accepts connections of agents whose secrets it has.
type Proxy struct {
	options   Options
	clients   atomic.Pointer[[]known]
	strangers *strangers
}

// known is a client with the keys derived from its secret.
type known struct {
	Client
	naming []byte
	config *tls.Config
}

// NewProxy returns a proxy with these clients.
func NewProxy(credentials []Credential, options Options) (*Proxy, error) {
	options = options.withDefaults()
	p := &Proxy{options: options, strangers: newStrangers(options.MaxStrangers)}
	p.clients.Store(&[]known{})
	return p, p.SetClients(credentials)
}

// SetClients replaces the clients. On an error nothing changes. Clients that stay keep
// their replay protection. Open connections stay open: their owner must call Knows and
// close those of removed clients.
func (p *Proxy) SetClients(credentials []Credential) error {
	clients := make([]known, 0, len(credentials))
	names := make(map[ID]string, len(credentials))
	before := make(map[ID]Client, len(credentials))
	for _, client := range p.Clients() {
		before[client.ID] = client
	}
	for _, credential := range credentials {
		client, err := p.know(credential)
		if err != nil {
			return fmt.Errorf("client %q: %w", credential.Name, err)
		}
		if other, twice := names[client.ID]; twice {
			return fmt.Errorf("clients %q and %q have the same secret; each needs one of its own", other, client.Name)
		}
		names[client.ID] = client.Name
		client.replay, client.names = before[client.ID].replay, before[client.ID].names
		if client.replay == nil {
			client.replay, client.names = wire.NewReplay(wire.DefaultReplayEntries), wire.NewMemory(wire.DefaultReplayEntries)
		}
		clients = append(clients, client)
	}
	p.clients.Store(&clients)
	return nil
}

func (p *Proxy) know(credential Credential) (known, error) {
	if !p.options.Hellos {
		if err := checkSecret(credential.Secret); err != nil {
			return known{}, err
		}
	}
	keys, err := derive(credential.Secret)
	if err != nil {
		return known{}, err
	}
	certificate, err := certify(keys.proxy)
	if err != nil {
		return known{}, err
	}
	config := base(p.options, certificate, public(keys.agent))
	config.ClientAuth = tls.RequireAnyClientCert // base's VerifyConnection checks the key
	client := Client{Name: credential.Name, ID: ID(public(keys.agent)), Secret: credential.Secret}
	return known{client, keys.naming, config}, nil
}

// Clients returns the current clients.
func (p *Proxy) Clients() []Client {
	clients := make([]Client, 0, len(*p.clients.Load()))
	for _, client := range *p.clients.Load() {
		clients = append(clients, client.Client)
	}
	return clients
}

// Knows reports whether there is a client with this ID and name.
func (p *Proxy) Knows(who Client) bool {
	for _, client := range *p.clients.Load() {
		if client.ID == who.ID && client.Name == who.Name {
			return true
		}
	}
	return false
}

// Handshake authenticates and encrypts conn and identifies the client. It ends with ctx
// or after the timeout. On an error conn is closed. A peer that did not prove that it
// has a secret has received no byte. As soon as the client is identified, Handshake
// calls admit, if not nil. An error of admit ends the handshake.
func (p *Proxy) Handshake(ctx context.Context, conn net.Conn, admit func(Client) error) (*Conn, error) {
	guarded := &guard{Conn: conn, left: maxClientHello}
	leave := p.strangers.enter(conn)
	defer leave()
	var client *known
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			var err error
			if client, err = p.recognise(hello.ServerName); err != nil {
				return nil, err
			}
			guarded.admit()
			leave()
			if admit != nil {
				if err := admit(client.Client); err != nil {
					return nil, err
				}
			}
			return client.config, nil
		},
	}
	secure, err := handshake(ctx, conn, p.options.Timeout, tls.Server(guarded, config), func() Client { return client.Client })
	switch {
	case err == nil:
		guarded.done = true
		return secure, nil
	case client != nil:
		return nil, client.Fault(err)
	case errors.Is(err, net.ErrClosed) && ctx.Err() == nil:
		return nil, ErrCrowded
	}
	return nil, err
}

// recognise returns the client that made a server name. The nonce must be new. The time
// is not checked, so an agent's clock may be wrong. A replayed name that was forgotten
// starts a handshake that only the agent's key can complete.
func (p *Proxy) recognise(name string) (*known, error) {
	opened, ok := parseName(name)
	if !ok {
		return nil, ErrStranger
	}
	clients := *p.clients.Load()
	for i := range clients {
		if !opened.by(clients[i].naming) {
			continue
		}
		if err := clients[i].names.Once(opened.nonce); err != nil {
			return nil, clients[i].Fault(err)
		}
		return &clients[i], nil
	}
	return nil, ErrStranger
}
