package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"mplab/analysis/mptrace/internal/capture"
)

func newCaptureCommand() *cobra.Command {
	o := capture.Options{Application: "mptrace " + version}
	command := &cobra.Command{
		Use:   "capture --interface NAME --write FILE.pcapng",
		Short: "Capture the packets of an interface, headers only",
		Long: `capture writes the packets of an interface, both directions, to a pcapng file
until SIGTERM or SIGINT. Each packet is cut behind its last header, in the
kernel: payload is never seen, except with --payload.

It prints {"event":"ready"} once packets are being captured, and at the end
{"event":"done","packets":N,"dropped":M}, where M packets were dropped because
the buffer was full. An existing file is not overwritten. Only the owner can read
the file.

Exit codes: 0 success; 1 the file could not be written completely (the packets
in it are valid); 2 no such interface, or the file exists; 3 no permission.`,
		Example: "  mptrace capture --interface wlan0 --write phone-wlan0.pcapng",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runCapture(o) },
	}
	command.Flags().StringVarP(&o.Interface, "interface", "i", "", "interface to capture on")
	command.Flags().StringVar(&o.Name, "name", "", "name of the interface in the file (default: its own name)")
	command.Flags().StringVarP(&o.File, "write", "w", "", "pcapng file to write")
	command.Flags().BoolVar(&o.Payload, "payload", false, "keep the payload too")
	command.Flags().Uint32Var(&o.SnapLen, "snaplen", 0, "keep at most this many bytes of a packet (0: no limit)")
	_ = command.MarkFlagRequired("interface")
	_ = command.MarkFlagRequired("write")
	return command
}

func runCapture(o capture.Options) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	c, err := capture.Open(o, func(notice string) { fmt.Fprintln(os.Stderr, "mptrace:", notice) })
	if err != nil {
		code := exitBadInput
		if errors.Is(err, capture.ErrPermission) {
			code = exitPermission
		}
		return &exitError{code, err}
	}
	go func() {
		<-signals
		c.Stop()
	}()
	fmt.Println(`{"event":"ready"}`)
	packets, dropped, err := c.Run()
	fmt.Printf("{\"event\":\"done\",\"packets\":%d,\"dropped\":%d}\n", packets, dropped)
	if err != nil {
		return &exitError{exitPartial, err}
	}
	return nil
}
