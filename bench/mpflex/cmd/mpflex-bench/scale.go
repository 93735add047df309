package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"mplab/bench/mpflex/scale"
)

// measureScale measures the cost of many connections and prints a table.
func measureScale(factor float64) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fmt.Print(scale.Head)
	for _, c := range scale.Cases(factor) {
		fmt.Fprintf(os.Stderr, "%s, %d × %d\n", c.Name, c.Clients, c.Streams)
		r, err := scale.Run(ctx, c)
		if err != nil {
			return err
		}
		fmt.Print(r.Row())
	}
	return nil
}
