package proxy

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"mplab/internal/jsonlog"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/identity"
)

// keepClients returns a function that reads the clients again on each SIGHUP. If they
// have an error, the old ones stay.
func (p *Proxy) keepClients(ctx context.Context) (keep func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	p.noteClients(connlog.Clients{}, nil)
	return func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			clients, err := p.config.ReadClients()
			if err == nil {
				err = p.SetClients(clients)
			}
			if err != nil {
				p.noteClients(connlog.Clients{}, err)
			}
		}
	}
}

// SetClients replaces the clients that may use the proxy. Before it returns, all
// connections and sessions of clients that were removed, or have another secret or
// name, are ended. On an error nothing changes.
func (p *Proxy) SetClients(clients []identity.Credential) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	before := p.known.Clients()
	if err := p.known.SetClients(clients); err != nil {
		return err
	}
	p.noteClients(compare(before, p.known.Clients()), nil)
	p.carriers.endUnknown(p.known.Knows)
	if p.sessions != nil {
		p.sessions.EndUnknown()
	}
	return nil
}

// compare returns which clients were added, removed, or have another secret.
func compare(before, after []identity.Client) (c connlog.Clients) {
	old := make(map[string]identity.Client, len(before))
	for _, client := range before {
		old[client.Name] = client
	}
	for _, client := range after {
		was, known := old[client.Name]
		switch {
		case !known:
			c.Added = append(c.Added, client.Name)
		case !bytes.Equal(was.Secret, client.Secret):
			c.Changed = append(c.Changed, client.Name)
		}
		delete(old, client.Name)
	}
	for name := range old {
		c.Removed = append(c.Removed, name)
	}
	slices.Sort(c.Removed)
	return c
}

// noteClients logs a reload of the clients.
func (p *Proxy) noteClients(record connlog.Clients, err error) {
	record.Event, record.T = "clients", jsonlog.Unix(time.Now())
	record.File, record.Clients = cmp.Or(p.config.ClientsDir, p.config.SecretFile), len(p.known.Clients())
	if err != nil {
		record.Error = err.Error()
	}
	p.log.Write(record)
}
