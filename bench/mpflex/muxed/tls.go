package muxed

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"time"
)

// secureClient adds TLS to a connection if it is configured. It accepts any certificate, because only the cost of TLS
// matters here.
func (c Config) secureClient(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if !c.Private {
		return conn, nil
	}
	return handshake(ctx, tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true, InsecureSkipVerify: true}))
}

// secureServer adds TLS on the server side, with a given certificate.
func (c Config) secureServer(ctx context.Context, conn net.Conn, own tls.Certificate) (net.Conn, error) {
	if !c.Private {
		return conn, nil
	}
	return handshake(ctx, tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true, Certificates: []tls.Certificate{own}}))
}

// handshakeTime is the maximum duration of the handshake.
const handshakeTime = 5 * time.Second

func handshake(ctx context.Context, conn *tls.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	return conn, conn.HandshakeContext(ctx)
}

// certify creates a self-signed certificate.
func certify() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
