package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
	"mplab/internal/jsonlog"
	"mplab/phonelog/internal/collector"
	"mplab/phonelog/internal/config"
)

func collectorCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "collector --config FILE",
		Short: "Receive the uploads of loggers over HTTPS and store them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadCollector(file)
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			log, err := jsonlog.Open(c.Log)
			if err != nil {
				return cmdline.Exit(cmdline.NotReady, err)
			}
			defer log.Close() //nolint:errcheck // every record is written already
			k, err := collector.New(c, log)
			if err != nil {
				return cmdline.Exit(cmdline.NotReady, err)
			}
			announce(cmd.OutOrStdout(), readyLine{Role: "collector", Plain: c.TLS == nil,
				Listen: map[string]netip.AddrPort{"http": k.Listening()}})
			if err := k.Run(cmd.Context()); err != nil {
				return cmdline.Exit(cmdline.Failed, err)
			}
			return nil
		},
	}
	cmdline.ConfigFlag(cmd, &file)
	cmd.AddCommand(collectorHealthCommand(), collectorStatusCommand())
	return cmd
}

func collectorStatusCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "status --control PATH",
		Short: "Show the state of a running collector as one JSON object",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var status collector.Status
			if err := ask(cmd.Context(), path, "status", &status); err != nil {
				return err
			}
			cmdline.PrintJSON(cmd.OutOrStdout(), status)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "control", "", "the control socket of the collector, its configuration's `PATH`")
	_ = cmd.MarkFlagRequired("control") // fails only for a flag that does not exist
	return cmd
}

func collectorHealthCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "health --config FILE",
		Short: "Ask the collector of a configuration, on this machine, whether it can store; for health checks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadCollector(file)
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			health, err := askHealth(cmd, c)
			if err != nil {
				health.Error = err.Error()
			}
			cmdline.PrintJSON(cmd.OutOrStdout(), health)
			if !health.OK {
				return cmdline.Exit(cmdline.Failed, nil)
			}
			return nil
		},
	}
	cmdline.ConfigFlag(cmd, &file)
	return cmd
}

func askHealth(cmd *cobra.Command, c config.Collector) (health collector.Health, err error) {
	address, scheme := c.Listen.AddrPort, "http"
	if address.Addr().IsUnspecified() {
		loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if address.Addr().Is6() {
			loopback = netip.IPv6Loopback()
		}
		address = netip.AddrPortFrom(loopback, address.Port())
	}
	transport := &http.Transport{}
	if c.TLS != nil {
		certificate, err := c.TLS.Read()
		if err != nil {
			return health, err
		}
		scheme = "https"
		// The certificate's name is not that of the loopback interface, so
		// compare the certificate itself.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error { //nolint:gosec // verified here
			if len(raw) == 0 || !bytes.Equal(raw[0], certificate.Certificate[0]) {
				return errors.New("it serves another certificate than the file has; send it SIGHUP")
			}
			return nil
		}}
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, scheme+"://"+address.String()+"/health", nil)
	if err != nil {
		return health, err
	}
	response, err := client.Do(request)
	if err != nil {
		return health, err
	}
	defer response.Body.Close() //nolint:errcheck // read
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err == nil && json.Unmarshal(text, &health) != nil {
		err = fmt.Errorf("%s is not a collector", address)
	}
	return health, err
}
