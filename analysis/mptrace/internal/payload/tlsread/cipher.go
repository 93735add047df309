package tlsread

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// opener decrypts the records of one direction in order.
type opener interface {
	// open decrypts a record into dst and returns its content and type. It
	// returns false if the authentication fails. header is the record header (5
	// bytes).
	open(dst, header, body []byte, seq uint64) (plain []byte, kind uint8, ok bool)
}

func (s suite) aead(key []byte) (cipher.AEAD, error) {
	if s.protection == chacha {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// opener13 returns the opener of a TLS 1.3 traffic secret (RFC 8446 §7.3).
func (s suite) opener13(secret []byte) (opener, error) {
	key, err := s.expandLabel(secret, "key", s.keySize)
	if err != nil {
		return nil, err
	}
	o := &aead13{}
	if o.aead, err = s.aead(key); err != nil {
		return nil, err
	}
	iv, err := s.expandLabel(secret, "iv", 12)
	copy(o.iv[:], iv)
	return o, err
}

// openers12 returns the openers of client and server for TLS 1.2 (RFC 5246
// §6.3).
func (s suite) openers12(master, clientRandom, serverRandom []byte, encryptThenMAC bool) (out [2]opener, err error) {
	macSize, ivSize := 0, 12
	switch s.protection {
	case gcm:
		ivSize = 4
	case cbc:
		macSize, ivSize = s.mac().Size(), 0
	}
	block := s.prf(master, "key expansion", append(append([]byte(nil), serverRandom...), clientRandom...), 2*(macSize+s.keySize+ivSize))
	next := func(n int) []byte {
		part := block[:n]
		block = block[n:]
		return part
	}
	macs := [2][]byte{next(macSize), next(macSize)}
	keys := [2][]byte{next(s.keySize), next(s.keySize)}
	ivs := [2][]byte{next(ivSize), next(ivSize)}
	for i := range out {
		if s.protection == cbc {
			c := &cbc12{mac: hmac.New(s.mac, macs[i]), encryptThenMAC: encryptThenMAC}
			if c.block, err = aes.NewCipher(keys[i]); err != nil {
				return out, err
			}
			out[i] = c
			continue
		}
		a := &aead12{explicit: s.protection == gcm}
		if a.aead, err = s.aead(keys[i]); err != nil {
			return out, err
		}
		copy(a.iv[:], ivs[i])
		out[i] = a
	}
	return out, nil
}

// aead13 is the record protection of RFC 8446 §5.2.
type aead13 struct {
	aead  cipher.AEAD
	iv    [12]byte
	nonce [12]byte
}

func (o *aead13) open(dst, header, body []byte, seq uint64) ([]byte, uint8, bool) {
	number(&o.nonce, &o.iv, seq)
	plain, err := o.aead.Open(dst, o.nonce[:], body, header)
	if err != nil {
		return nil, 0, false
	}
	for n := len(plain) - 1; n >= 0; n-- { // zeros are padding
		if plain[n] != 0 {
			return plain[:n], plain[n], true
		}
	}
	return nil, 0, false
}

// number computes the nonce of a record: the sequence number XOR the vector.
func number(nonce, iv *[12]byte, seq uint64) {
	*nonce = *iv
	binary.BigEndian.PutUint64(nonce[4:], binary.BigEndian.Uint64(iv[4:])^seq)
}

// aead12 is the record protection of RFC 5288 §3 (explicit: a part of the nonce
// is in the record) and RFC 7905 §2.
type aead12 struct {
	aead     cipher.AEAD
	explicit bool
	iv       [12]byte
	nonce    [12]byte
	data     [13]byte
}

func (o *aead12) open(dst, header, body []byte, seq uint64) ([]byte, uint8, bool) {
	if o.explicit {
		if len(body) < 8 {
			return nil, 0, false
		}
		copy(o.nonce[:4], o.iv[:4])
		copy(o.nonce[4:], body)
		body = body[8:]
	} else {
		number(&o.nonce, &o.iv, seq)
	}
	size := len(body) - o.aead.Overhead()
	if size < 0 {
		return nil, 0, false
	}
	additional(&o.data, header, seq, size)
	plain, err := o.aead.Open(dst, o.nonce[:], body, o.data[:])
	return plain, header[0], err == nil
}

// additional computes the additional authenticated data of TLS 1.2.
func additional(data *[13]byte, header []byte, seq uint64, size int) {
	binary.BigEndian.PutUint64(data[:], seq)
	copy(data[8:], header[:3])
	binary.BigEndian.PutUint16(data[11:], uint16(size))
}

// cbc12 is the record protection of RFC 5246 §6.2.3.2, and of RFC 7366.
type cbc12 struct {
	block          cipher.Block
	mac            hash.Hash
	encryptThenMAC bool
	data           [13]byte
}

func (o *cbc12) open(dst, header, body []byte, seq uint64) ([]byte, uint8, bool) {
	const blockSize = aes.BlockSize
	macSize := o.mac.Size()
	if o.encryptThenMAC {
		at := len(body) - macSize
		if at < 0 || !o.authentic(header, seq, body[:at], body[at:]) {
			return nil, 0, false
		}
		body = body[:at]
	}
	if len(body) < 2*blockSize || len(body)%blockSize != 0 {
		return nil, 0, false
	}
	plain := append(dst, body[blockSize:]...)
	cipher.NewCBCDecrypter(o.block, body[:blockSize]).CryptBlocks(plain, plain)
	padding := int(plain[len(plain)-1]) + 1
	if o.encryptThenMAC {
		macSize = 0
	}
	at := len(plain) - padding - macSize
	if at < 0 {
		return nil, 0, false
	}
	if !o.encryptThenMAC && !o.authentic(header, seq, plain[:at], plain[at:at+macSize]) {
		return nil, 0, false
	}
	return plain[:at], header[0], true
}

func (o *cbc12) authentic(header []byte, seq uint64, content, tag []byte) bool {
	additional(&o.data, header, seq, len(content))
	o.mac.Reset()
	o.mac.Write(o.data[:])
	o.mac.Write(content)
	return subtle.ConstantTimeCompare(o.mac.Sum(nil), tag) == 1
}
