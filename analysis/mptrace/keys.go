package mptrace

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // MPTCP version 0 is made of it
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"mplab/analysis/mptrace/packet"
)

// tokenAndIDSN derives the token, the first 32 bits of the key's hash, and the
// initial data sequence number, its last 64 bits: SHA-256 in version 1
// (RFC 8684 §3.2, §3.1), SHA-1 in version 0 (RFC 6824).
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

// joinHMAC is the HMAC that a side sends in MP_JOIN: its own key and nonce
// come first (RFC 8684 §3.2).
func joinHMAC(version int32, ownKey, peerKey uint64, ownNonce, peerNonce uint32) []byte {
	var key [16]byte
	var message [8]byte
	binary.BigEndian.PutUint64(key[:], ownKey)
	binary.BigEndian.PutUint64(key[8:], peerKey)
	binary.BigEndian.PutUint32(message[:], ownNonce)
	binary.BigEndian.PutUint32(message[4:], peerNonce)
	algorithm := func() hash.Hash { return sha256.New() }
	if version == 0 {
		algorithm = func() hash.Hash { return sha1.New() } //nolint:gosec // see above
	}
	mac := hmac.New(algorithm, key[:])
	mac.Write(message[:])
	return mac.Sum(nil)
}

// joinState is how far the handshake of an additional subflow has come.
type joinState struct {
	syn, synAck, ack bool
	wrong            bool // an HMAC does not belong to the keys
	nonce            [2]uint32
}

func (j *joinState) complete() bool { return j.syn && j.synAck && j.ack && !j.wrong }

// joinSignal takes MP_JOIN of an additional subflow.
func (e *Engine) joinSignal(f *flow, p *packet.Packet, dir int) {
	if !f.additional {
		return
	}
	o, j := &p.Options.Join, &f.join
	syn, ack := p.Flags&packet.SYN != 0, p.Flags&packet.ACK != 0
	opened := dir == f.opener
	switch {
	case o.Form == packet.JoinSYN && syn && !ack && opened:
		j.syn, j.nonce[dir] = true, o.Nonce
		f.backup = f.backup || o.Backup
	case o.Form == packet.JoinSYNACK && syn && ack && !opened:
		first := !j.synAck
		j.synAck, j.nonce[dir] = true, o.Nonce
		f.backup = f.backup || o.Backup
		if first {
			e.verify(f, dir, o.HMAC[:8])
		}
	case o.Form == packet.JoinACK && !syn && ack && opened:
		if !j.ack && j.synAck {
			e.verify(f, dir, o.HMAC[:])
		}
		j.ack = true
	}
}

// verify compares an HMAC with the one that the keys make, when both are known.
func (e *Engine) verify(f *flow, dir int, got []byte) {
	c := f.conn
	if !c.hasKey[client] || !c.hasKey[server] || !f.join.syn {
		return
	}
	want := joinHMAC(c.version, c.key[dir], c.key[1-dir], f.join.nonce[dir], f.join.nonce[1-dir])
	if !hmac.Equal(want[:len(got)], got) {
		f.join.wrong = true
		e.warnings.HMACMismatch++
	}
}
