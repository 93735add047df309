package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// identity holds the keys of a connection and the values derived from them:
// token and initial data sequence number of both ends (RFC 8684 §3.2, RFC 6824
// §3.2).
type identity struct {
	version uint8
	keys    [2]uint64 // client, server
	tokens  [2]uint32
	idsn    [2]uint64
}

func newIdentity(version uint8, client, server uint64) identity {
	i := identity{version: version, keys: [2]uint64{client, server}}
	for end, key := range i.keys {
		sum := i.digest(binary.BigEndian.AppendUint64(nil, key))
		i.tokens[end] = binary.BigEndian.Uint32(sum)
		i.idsn[end] = binary.BigEndian.Uint64(sum[len(sum)-8:])
	}
	return i
}

func (i identity) digest(b []byte) []byte {
	if i.version == 0 {
		sum := sha1.Sum(b)
		return sum[:]
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// hmac returns the HMAC that one end sends in MP_JOIN. Its own key and nonce
// come first.
func (i identity) hmac(end int, nonces [2]uint32) []byte {
	var algorithm func() hash.Hash = sha256.New
	if i.version == 0 {
		algorithm = sha1.New
	}
	key := binary.BigEndian.AppendUint64(nil, i.keys[end])
	mac := hmac.New(algorithm, binary.BigEndian.AppendUint64(key, i.keys[1-end]))
	message := binary.BigEndian.AppendUint32(nil, nonces[end])
	mac.Write(binary.BigEndian.AppendUint32(message, nonces[1-end]))
	return mac.Sum(nil)
}

// another returns the identity of a connection with the same traffic and other
// keys.
func (i identity) another(version uint8, round uint64) identity {
	if round == 0 {
		return newIdentity(version, i.keys[0], i.keys[1])
	}
	mix := round * 0x9e3779b97f4a7c15
	return newIdentity(version, i.keys[0]^mix, i.keys[1]^mix)
}
