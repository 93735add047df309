package mptcp

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // MPTCP version 0 is made of it
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// tokenAndIDSN derives the token (first 32 bits of the key's hash) and the
// initial data sequence number (last 64 bits). The hash is SHA-256 in version 1
// (RFC 8684 §3.1, §3.2) and SHA-1 in version 0 (RFC 6824 §3.1, §3.2).
func tokenAndIDSN(version int32, key uint64) (uint32, uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], key)
	if version == 0 {
		sum := sha1.Sum(b[:]) //nolint:gosec // see above
		return binary.BigEndian.Uint32(sum[:]), binary.BigEndian.Uint64(sum[12:])
	}
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint32(sum[:]), binary.BigEndian.Uint64(sum[24:])
}

// joinHMAC returns the HMAC that a side sends in MP_JOIN. Its own key and nonce
// come first (RFC 8684 §3.2).
func joinHMAC(version int32, ownKey, peerKey uint64, ownNonce, peerNonce uint32) []byte {
	var key [16]byte
	var message [8]byte
	binary.BigEndian.PutUint64(key[:], ownKey)
	binary.BigEndian.PutUint64(key[8:], peerKey)
	binary.BigEndian.PutUint32(message[:], ownNonce)
	binary.BigEndian.PutUint32(message[4:], peerNonce)
	if version != 0 {
		sum := hmacSHA256(key, message)
		return sum[:]
	}
	mac := hmac.New(func() hash.Hash { return sha1.New() }, key[:]) //nolint:gosec // see above
	mac.Write(message[:])
	return mac.Sum(nil)
}

// hmacSHA256 is HMAC (RFC 2104) for the sizes of MP_JOIN. Unlike crypto/hmac it
// allocates nothing.
func hmacSHA256(key [16]byte, message [8]byte) [sha256.Size]byte {
	var inner [sha256.BlockSize + len(message)]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		inner[i], outer[i] = 0x36, 0x5c
	}
	for i, b := range key {
		inner[i] ^= b
		outer[i] ^= b
	}
	copy(inner[sha256.BlockSize:], message[:])
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

// tokenOwner is the side of a connection that a token identifies.
type tokenOwner struct {
	conn *Conn
	side uint8
}

// maxOwners is the maximum number of connections per token.
const maxOwners = 8

// own makes a side of a connection the newest owner of its token.
func (e *Engine) own(c *Conn, side uint8) {
	token := c.multi.token[side]
	if owner, ok := e.tokens[token]; ok {
		earlier := e.earlier[token]
		if len(earlier) == maxOwners {
			earlier = slices.Delete(earlier, 0, 1)
		}
		if e.earlier == nil {
			e.earlier = map[uint32][]tokenOwner{}
		}
		e.earlier[token] = append(earlier, owner)
	}
	e.tokens[token] = tokenOwner{c, side}
}

// disown releases a token of a connection.
func (e *Engine) disown(c *Conn, token uint32) {
	earlier, shared := e.earlier[token]
	if shared {
		earlier = slices.DeleteFunc(earlier, func(o tokenOwner) bool { return o.conn == c })
	}
	if e.tokens[token].conn == c {
		if n := len(earlier); n > 0 {
			e.tokens[token] = earlier[n-1]
			earlier = earlier[:n-1]
		} else {
			delete(e.tokens, token)
		}
	}
	switch {
	case len(earlier) > 0:
		e.earlier[token] = earlier
	case shared:
		delete(e.earlier, token)
	}
}

// learn stores the key of a side and derives its token and initial data
// sequence number. A later, different key is ignored and counted.
func (e *Engine) learn(c *Conn, side uint8, key uint64) {
	m := c.multi
	if m.hasKey[side] {
		if m.key[side] != key {
			e.warnings.KeyChanged++
		}
		return
	}
	m.key[side], m.hasKey[side] = key, true
	m.token[side], m.idsn[side] = tokenAndIDSN(c.version, key)
	m.hasToken[side] = true
	e.own(c, side)
}

// forgetTokens releases the tokens of a connection that ends.
func (e *Engine) forgetTokens(c *Conn) {
	if c.multi == nil {
		return
	}
	for side, token := range c.multi.token {
		if !c.multi.hasToken[side] {
			continue
		}
		e.disown(c, token)
		if c.orphan && e.orphans[token] == c {
			delete(e.orphans, token)
		}
	}
}
