package emulator

import (
	"context"
	"fmt"
	"io"

	"mplab/control"
	"mplab/linkem/internal/config"
	"mplab/linkem/internal/system"
)

// Run emulates the links of the configuration file until ctx ends, and serves the control socket. It writes
// {"event":"ready"} to stdout when the links are up, and warnings to stderr.
func Run(ctx context.Context, file, socket string, stdout, stderr io.Writer) error {
	config, err := config.Load(file)
	if err != nil {
		return err
	}
	system.TuneRuntime()
	warnings := make(chan string, 64)
	warn := func(message string) {
		select {
		case warnings <- message:
		default: // a full channel: drop the warning
		}
	}
	links, err := openLinks(config, warn)
	if err != nil {
		return err
	}
	server, err := control.Listen(socket, "linkem")
	if err != nil {
		closeLinks(links)
		return err
	}
	failed := make(chan error, len(links))
	for _, l := range links {
		go func() { failed <- l.run() }()
		<-l.started
	}
	server.Start(controller{links}.answer)
	_, _ = fmt.Fprintln(stdout, `{"event":"ready"}`)
	for err = nil; ; {
		select {
		case message := <-warnings:
			_, _ = fmt.Fprintln(stderr, "linkem:", message)
			continue
		case err = <-failed:
		case <-ctx.Done():
		}
		break
	}
	server.Close()
	for _, l := range links {
		l.stop()
		<-l.done
	}
	closeLinks(links)
	return err
}

func openLinks(config config.Config, warn func(string)) ([]*link, error) {
	clock := newClock()
	var links []*link
	for _, c := range config.Links {
		l, err := openLink(c, config.Seed, clock, warn)
		if err != nil {
			closeLinks(links)
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

func closeLinks(links []*link) {
	for _, l := range links {
		l.close()
	}
}
