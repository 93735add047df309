package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Bounds of the settings.
const (
	MaxStreams   = 1 << 20 // streams open at a time
	MinWindow    = 1 << 10 // bytes
	MaxWindow    = 1 << 30 // bytes
	MinKeepAlive = 100 * time.Millisecond
	MaxKeepAlive = time.Hour
	MaxSchemes   = 4096 // bytes
)

// settingsSize is the size of settings without schemes, in bytes.
const settingsSize = 4 + 4 + 4 + 2

// Settings are bounds and requests of the sender of an Attach or an Attached. A session
// keeps the settings with which it was made, except KeepAlive: each attach sets it for
// its path.
type Settings struct {
	// MaxStreams is how many streams the receiver of the message may have open at a
	// time: 1 to MaxStreams.
	MaxStreams uint32
	// InitialWindow is how many bytes of each stream the receiver of the message may
	// send before the first acknowledgement: MinWindow to MaxWindow.
	InitialWindow uint32
	// KeepAlive is the silence after which each side pings a path with open streams:
	// MinKeepAlive to MaxKeepAlive, in ms. The agent decides; the answer repeats it. 0
	// in an attach: each side uses its own period.
	KeepAlive time.Duration
	// Schemes is the encoded table of schemes, at most MaxSchemes bytes. This package
	// does not parse it.
	Schemes []byte
}

func (s Settings) check() error {
	switch {
	case s.MaxStreams < 1 || s.MaxStreams > MaxStreams:
		return fmt.Errorf("%w: %d streams", ErrFormat, s.MaxStreams)
	case s.InitialWindow < MinWindow || s.InitialWindow > MaxWindow:
		return fmt.Errorf("%w: a window of %d bytes", ErrFormat, s.InitialWindow)
	case s.KeepAlive != 0 && (s.KeepAlive < MinKeepAlive || s.KeepAlive > MaxKeepAlive):
		return fmt.Errorf("%w: a keep-alive period of %v", ErrFormat, s.KeepAlive)
	case len(s.Schemes) > MaxSchemes:
		return fmt.Errorf("%w: %d bytes of schemes", ErrFormat, len(s.Schemes))
	}
	return nil
}

func (s Settings) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, s.MaxStreams)
	b = binary.BigEndian.AppendUint32(b, s.InitialWindow)
	b = binary.BigEndian.AppendUint32(b, uint32(s.KeepAlive.Milliseconds()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Schemes)))
	return append(b, s.Schemes...)
}

// parseSettings decodes settings that fill b.
func parseSettings(b []byte) (Settings, error) {
	if len(b) < settingsSize || len(b) != settingsSize+int(binary.BigEndian.Uint16(b[12:])) {
		return Settings{}, fmt.Errorf("%w: settings of %d bytes", ErrFormat, len(b))
	}
	s := Settings{
		MaxStreams:    binary.BigEndian.Uint32(b),
		InitialWindow: binary.BigEndian.Uint32(b[4:]),
		KeepAlive:     time.Duration(binary.BigEndian.Uint32(b[8:])) * time.Millisecond,
	}
	if len(b) > settingsSize {
		s.Schemes = append([]byte(nil), b[settingsSize:]...)
	}
	return s, s.check()
}
