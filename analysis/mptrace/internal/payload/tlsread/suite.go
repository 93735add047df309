package tlsread

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha1" // #nosec G505: what was used on the wire
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"
)

// protection is the kind of record encryption.
type protection uint8

const (
	gcm protection = iota
	chacha
	cbc
)

// suite is a cipher suite.
type suite struct {
	protection protection
	keySize    int
	hash       func() hash.Hash // for the key derivation
	mac        func() hash.Hash // for CBC
}

// find returns a supported cipher suite of a TLS version.
func find(version, id uint16) (suite, bool) {
	s, ok := suites[id]
	return s, ok && (id>>8 == 0x13) == (version == tls13)
}

const (
	tls12 = 0x0303
	tls13 = 0x0304
)

// suites maps IANA numbers to cipher suites. Key exchange and signature are
// irrelevant once the secrets are known.
var suites = map[uint16]suite{
	0x1301: {gcm, 16, sha256.New, nil},
	0x1302: {gcm, 32, sha512.New384, nil},
	0x1303: {chacha, 32, sha256.New, nil},

	0x009c: {gcm, 16, sha256.New, nil}, // RSA
	0x009e: {gcm, 16, sha256.New, nil}, // DHE-RSA
	0xc02b: {gcm, 16, sha256.New, nil}, // ECDHE-ECDSA
	0xc02f: {gcm, 16, sha256.New, nil}, // ECDHE-RSA
	0x009d: {gcm, 32, sha512.New384, nil},
	0x009f: {gcm, 32, sha512.New384, nil},
	0xc02c: {gcm, 32, sha512.New384, nil},
	0xc030: {gcm, 32, sha512.New384, nil},
	0xcca8: {chacha, 32, sha256.New, nil}, // ECDHE-RSA
	0xcca9: {chacha, 32, sha256.New, nil}, // ECDHE-ECDSA
	0xccaa: {chacha, 32, sha256.New, nil}, // DHE-RSA

	0x002f: {cbc, 16, sha256.New, sha1.New},
	0x0033: {cbc, 16, sha256.New, sha1.New},
	0xc009: {cbc, 16, sha256.New, sha1.New},
	0xc013: {cbc, 16, sha256.New, sha1.New},
	0x0035: {cbc, 32, sha256.New, sha1.New},
	0x0039: {cbc, 32, sha256.New, sha1.New},
	0xc00a: {cbc, 32, sha256.New, sha1.New},
	0xc014: {cbc, 32, sha256.New, sha1.New},
	0x003c: {cbc, 16, sha256.New, sha256.New},
	0x0067: {cbc, 16, sha256.New, sha256.New},
	0xc023: {cbc, 16, sha256.New, sha256.New},
	0xc027: {cbc, 16, sha256.New, sha256.New},
	0x003d: {cbc, 32, sha256.New, sha256.New},
	0x006b: {cbc, 32, sha256.New, sha256.New},
	0xc024: {cbc, 32, sha512.New384, sha512.New384},
	0xc028: {cbc, 32, sha512.New384, sha512.New384},
}

// expandLabel is HKDF-Expand-Label of RFC 8446 §7.1 with an empty context.
func (s suite) expandLabel(secret []byte, label string, size int) ([]byte, error) {
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(info, byte(6+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, 0)
	return hkdf.Expand(s.hash, secret, string(info), size)
}

// prf is the pseudo-random function of TLS 1.2, RFC 5246 §5.
func (s suite) prf(secret []byte, label string, seed []byte, size int) []byte {
	seed = append([]byte(label), seed...)
	h := hmac.New(s.hash, secret)
	sum := func(parts ...[]byte) []byte {
		h.Reset()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	var out []byte
	for a := sum(seed); len(out) < size; a = sum(a) {
		out = append(out, sum(a, seed)...)
	}
	return out[:size]
}
