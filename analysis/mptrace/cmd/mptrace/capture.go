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
{"event":"done","packets":N,"dropped":M}, where M packets found no room. The
file is not overwritten when it exists, and readable by its owner alone.

Exit codes: 0 well; 1 the file could not be written to its end (it is valid as
far as it goes); 2 no such interface, or the file exists; 3 no permission.`,
		Example: "  mptrace capture --interface wlan0 --write phone-wlan0.pcapng",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runCapture(o) },
	}
	command.Flags().StringVarP(&o.Interface, "interface", "i", "", "interface to capture on")
	command.Flags().StringVar(&o.Name, "name", "", "what the file shall call the interface (default: its own name)")
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
