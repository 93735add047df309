package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mplab/internal/strictjson"
	"mplab/mpflex/internal/transport/identity"
)

// Defaults of optional keys.
const (
	DefaultIdleTimeout    = 300 * time.Second
	DefaultMaxConnections = 4096
)

// Transports of an agent.
const (
	TCP    = "tcp"
	MPTCP  = "mptcp"
	MPFlex = "mpflex"
)

// MPFlexPlain is the proxy's listener for paths without encryption.
const MPFlexPlain = "mpflex_plain"

// Proxy is the configuration of the proxy.
type Proxy struct {
	Listen            ProxyListen `json:"listen"`
	SecretFile        string      `json:"secret_file"` // of the only client; alternative to clients_dir
	ClientsDir        string      `json:"clients_dir"` // directory with a file per client
	Allow             []string    `json:"allow"`
	CongestionControl string      `json:"congestion_control"` // "": the system's default
	Log               string      `json:"log"`                // "": no log
	MaxConnections    int         `json:"max_connections"`    // 0: DefaultMaxConnections
	IdleTimeoutS      float64     `json:"idle_timeout_s"`     // 0: DefaultIdleTimeout

	Control      string  `json:"control"`        // path of the control socket; "": none
	StatusEveryS float64 `json:"status_every_s"` // 0: never

	Session   ProxySession   `json:"session"`
	PerClient ProxyPerClient `json:"per_client"`

	Clients []identity.Credential `json:"-"`
	Allowed Allow                 `json:"-"`
}

// ProxyListen holds the addresses of the proxy's listeners; at least one is needed.
type ProxyListen struct {
	TCP         Address `json:"tcp"`
	MPTCP       Address `json:"mptcp"`
	MPFlex      Address `json:"mpflex"`       // paths of sessions, encrypted
	MPFlexPlain Address `json:"mpflex_plain"` // paths of sessions, not encrypted; for measurements
}

// Agent is the configuration of the agent.
type Agent struct {
	Listen            AgentListen `json:"listen"`
	DNSServer         Address     `json:"dns_server"` // needed with listen.dns, and for names from SOCKS and HTTP clients
	Proxy             Address     `json:"proxy"`
	Transport         string      `json:"transport"` // TCP, MPTCP or MPFlex
	Device            string      `json:"device"`    // "": the routes decide; not with MPFlex
	Devices           []string    `json:"devices"`   // with TCP, instead of Device: each new connection uses the next one
	Paths             []AgentPath `json:"paths"`     // with MPFlex, at least one
	Plain             bool        `json:"plain"`     // the paths of MPFlex are not encrypted
	Mark              int         `json:"mark"`      // 0: none
	SecretFile        string      `json:"secret_file"`
	SocksUsersFile    string      `json:"socks_users_file"` // "": SOCKS clients need no password
	CongestionControl string      `json:"congestion_control"`
	Log               string      `json:"log"`
	MaxConnections    int         `json:"max_connections"`
	IdleTimeoutS      float64     `json:"idle_timeout_s"`

	Control      string  `json:"control"`        // path of the control socket; "": none
	StatusEveryS float64 `json:"status_every_s"` // 0: never
	PolicyFile   string  `json:"policy_file"`    // "": the default scheme carries all flows
	PolicyState  string  `json:"policy_state"`   // stores the count of the data plan; "": the remaining plan is unknown

	Session AgentSession `json:"session"`

	Secret     []byte            `json:"-"`
	SocksUsers map[string]string `json:"-"` // passwords by user; nil: no authentication
}

// AgentPath is an interface that carries the session.
type AgentPath struct {
	Device string `json:"device"`
	Backup bool   `json:"backup"` // use only while no other path can be used
}

// AgentListen holds the addresses of the agent's listeners.
type AgentListen struct {
	Redirect Address `json:"redirect"` // TCP connections redirected by netfilter
	DNS      Address `json:"dns"`      // DNS over UDP; optional
	Socks    Address `json:"socks"`    // SOCKS5; outside loopback only with users
	HTTP     Address `json:"http"`     // HTTP proxy, on loopback; at least one of redirect, socks and http is needed
}

// Address is an IP address with a port; the zero Address is "".
type Address = strictjson.Address

// LoadProxy reads and checks the configuration of a proxy, with its secrets.
func LoadProxy(path string) (Proxy, error) {
	var c Proxy
	if err := strictjson.Load(path, &c); err != nil {
		return Proxy{}, err
	}
	err := c.check()
	if err == nil {
		c.Clients, err = c.ReadClients()
	}
	if err == nil && len(c.Clients) == 0 {
		err = fmt.Errorf("clients_dir: %s holds no client; give each a file there, with its name, that holds its secret", c.ClientsDir)
	}
	if err != nil {
		return Proxy{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// LoadAgent reads and checks the configuration of an agent, with its secrets.
func LoadAgent(path string) (Agent, error) {
	var c Agent
	if err := strictjson.Load(path, &c); err != nil {
		return Agent{}, err
	}
	err := c.check()
	if err == nil {
		c.Secret, err = readSecret(c.SecretFile)
	}
	if err == nil && c.SocksUsersFile != "" {
		c.SocksUsers, err = readSocksUsers(c.SocksUsersFile)
	}
	if err != nil {
		return Agent{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// IdleTimeout returns the time without a byte after which a connection is reset.
func (c Proxy) IdleTimeout() time.Duration { return seconds(c.IdleTimeoutS) }

// IdleTimeout returns the time without a byte after which a connection is reset.
func (c Agent) IdleTimeout() time.Duration { return seconds(c.IdleTimeoutS) }

func (c *Proxy) check() error {
	if err := c.Listen.check(); err != nil {
		return err
	}
	if err := c.checkClients(); err != nil {
		return err
	}
	if err := c.Session.check(); err != nil {
		return err
	}
	if err := checkStatus(c.Control, c.Log, c.StatusEveryS, c.Listen.MPFlex.IsValid() || c.Listen.MPFlexPlain.IsValid()); err != nil {
		return err
	}
	if len(c.Allow) == 0 {
		return errors.New(`allow: name the destinations that agents may reach, for example "10.65.0.0/16:80,443"`)
	}
	var err error
	if c.Allowed, err = ParseAllow(c.Allow); err != nil {
		return err
	}
	if err := checkLimits(&c.MaxConnections, &c.IdleTimeoutS); err != nil {
		return err
	}
	return c.checkPerClient()
}

// All returns the listeners by transport.
func (l ProxyListen) All() map[string]Address {
	return map[string]Address{TCP: l.TCP, MPTCP: l.MPTCP, MPFlex: l.MPFlex, MPFlexPlain: l.MPFlexPlain}
}

func (l ProxyListen) check() error {
	all, taken := l.All(), map[Address]string{}
	for _, transport := range slices.Sorted(maps.Keys(all)) {
		address := all[transport]
		if !address.IsValid() {
			continue
		}
		if other, ok := taken[address]; ok && address.Port() != 0 {
			return fmt.Errorf("listen: %s and %s are both %s; they need an address each", other, transport, address)
		}
		taken[address] = transport
	}
	if len(taken) == 0 {
		return errors.New("listen: give at least one of tcp, mptcp, mpflex, mpflex_plain")
	}
	return nil
}

func (c *Agent) check() error {
	if c.Transport == MPFlex {
		if err := c.checkPaths(); err != nil {
			return err
		}
	}
	if err := c.Session.check(); err != nil {
		return err
	}
	if err := checkStatus(c.Control, c.Log, c.StatusEveryS, c.Transport == MPFlex); err != nil {
		return err
	}
	switch {
	case c.Transport != MPFlex && (len(c.Paths) > 0 || c.Plain):
		return fmt.Errorf(`paths, plain: only the transport "mpflex" has them, not %q`, c.Transport)
	case !c.Listen.Redirect.IsValid() && !c.Listen.Socks.IsValid() && !c.Listen.HTTP.IsValid():
		return errors.New("listen: give at least one of redirect (the address that connections are redirected to), socks and http")
	case c.Listen.HTTP.IsValid() && !c.Listen.HTTP.Addr().IsLoopback():
		return fmt.Errorf("listen.http: %s is not on the loopback interface: whoever reaches it could use the agent. Give a loopback address, such as 127.0.0.1:8118", c.Listen.HTTP)
	case c.Listen.Socks.IsValid() && !c.Listen.Socks.Addr().IsLoopback() && c.SocksUsersFile == "":
		return fmt.Errorf("listen.socks: %s is not on the loopback interface: whoever reaches it could use the agent. Give a loopback address, such as 127.0.0.1:1080, or socks_users_file", c.Listen.Socks)
	case c.Listen.Socks.IsValid() && c.Listen.Socks == c.Listen.HTTP && c.Listen.HTTP.Port() != 0:
		return fmt.Errorf("listen: socks and http are both %s; they need an address each", c.Listen.HTTP)
	case !c.Proxy.IsValid():
		return errors.New("proxy: missing; give the proxy's address and port")
	case c.Transport != TCP && c.Transport != MPTCP && c.Transport != MPFlex:
		return fmt.Errorf(`transport: %q is not known; give "tcp", "mptcp" or "mpflex"`, c.Transport)
	case c.SocksUsersFile != "" && !c.Listen.Socks.IsValid():
		return errors.New("socks_users_file: only listen.socks has users; give it, too")
	case c.SocksUsersFile != "" && c.Listen.HTTP.IsValid():
		return errors.New("socks_users_file: listen.http needs no password; remove one of them")
	case c.Listen.DNS.IsValid() && !c.DNSServer.IsValid():
		return errors.New("dns_server: missing; listen.dns needs a server to ask")
	case len(c.Device) > 15:
		return fmt.Errorf("device: %q is longer than an interface name can be (15)", c.Device)
	case len(c.Devices) > 0 && c.Transport != TCP:
		return fmt.Errorf(`devices: only the transport "tcp" has them, not %q`, c.Transport)
	case len(c.Devices) > 0 && c.Device != "":
		return errors.New("devices: device is given, too; leave one of them out")
	case c.Mark < 0 || int64(c.Mark) > 0xffffffff:
		return fmt.Errorf("mark: %d is not within 0 and 4294967295", c.Mark)
	}
	if err := c.checkDevices(); err != nil {
		return err
	}
	return checkLimits(&c.MaxConnections, &c.IdleTimeoutS)
}

func (c *Agent) checkDevices() error {
	for i, device := range c.Devices {
		switch {
		case device == "" || len(device) > 15:
			return fmt.Errorf("devices: %q is no name of an interface: 1 to 15 bytes are needed", device)
		case slices.Contains(c.Devices[:i], device):
			return fmt.Errorf("devices: %q is there twice", device)
		}
	}
	return nil
}

// maxPaths is the maximum number of paths of a session.
const maxPaths = 64

func (c *Agent) checkPaths() error {
	if c.Device != "" {
		return errors.New(`device: the transport "mpflex" has one for each of paths`)
	}
	if len(c.Paths) == 0 || len(c.Paths) > maxPaths {
		return fmt.Errorf("paths: %d are given; between 1 and %d are needed", len(c.Paths), maxPaths)
	}
	for i, p := range c.Paths {
		if len(p.Device) > 15 {
			return fmt.Errorf("paths: %q is longer than an interface name can be (15)", p.Device)
		}
		for _, other := range c.Paths[:i] {
			if other.Device == p.Device {
				return fmt.Errorf("paths: %q is there twice", p.Device)
			}
		}
	}
	return nil
}

func checkLimits(connections *int, idleS *float64) error {
	if *connections < 0 {
		return fmt.Errorf("max_connections: %d is negative", *connections)
	}
	if *idleS < 0 || *idleS > 1e6 {
		return fmt.Errorf("idle_timeout_s: %v is not within 0 and 1000000", *idleS)
	}
	if *connections == 0 {
		*connections = DefaultMaxConnections
	}
	if *idleS == 0 {
		*idleS = DefaultIdleTimeout.Seconds()
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
