package identity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// The labels of HKDF (RFC 5869): the salt, and the info of each key.
const (
	salt       = "mplab-mpflex/1"
	agentInfo  = "agent ed25519"
	proxyInfo  = "proxy ed25519"
	namingInfo = "server name"
)

// keys holds the values derived from a secret.
type keys struct {
	agent, proxy ed25519.PrivateKey
	naming       []byte // authenticates server names
}

// checkSecret returns ErrSecret for a secret that is too short for TLS.
func checkSecret(secret []byte) error {
	if len(secret) < MinSecret {
		return fmt.Errorf("%w: %d bytes; %d are needed, drawn at random", ErrSecret, len(secret), MinSecret)
	}
	return nil
}

func derive(secret []byte) (keys, error) {
	extracted, err := hkdf.Extract(sha256.New, secret, []byte(salt))
	if err != nil {
		return keys{}, err
	}
	var seeds [3][]byte
	for i, info := range []string{agentInfo, proxyInfo, namingInfo} {
		if seeds[i], err = hkdf.Expand(sha256.New, extracted, info, ed25519.SeedSize); err != nil {
			return keys{}, err
		}
	}
	return keys{ed25519.NewKeyFromSeed(seeds[0]), ed25519.NewKeyFromSeed(seeds[1]), seeds[2]}, nil
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// certify returns the self-signed certificate of a key, as TLS requires one. Only the
// key in it is used. The certificate is always the same. Its end date means "no expiry"
// (RFC 5280 §4.1.2.5).
func certify(key ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber:       big.NewInt(1),
		Subject:            pkix.Name{CommonName: "mpflex"},
		NotBefore:          time.Unix(0, 0).UTC(),
		NotAfter:           time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC),
		SignatureAlgorithm: x509.PureEd25519,
	}
	der, err := x509.CreateCertificate(nil, template, template, public(key), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
