package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/internal/anonymise"
	"mplab/internal/secretfile"
)

type anonymiseOptions struct {
	file, out string
	key       string
	addresses bool
	mapping   bool
}

func newAnonymiseCommand() *cobra.Command {
	var o anonymiseOptions
	command := &cobra.Command{
		Use:   "anonymise FILE.pcapng -o OUT.pcapng [--key FILE]",
		Short: "Replace the addresses in a capture and remove its content",
		Long: `anonymise writes a pcapng capture with other addresses and without content. IP
addresses are replaced so that two with a common prefix keep one of the same
length (Crypto-PAn), MAC addresses by random ones. Addresses of loopback,
multicast, documentation and the virtual lab stay; all others change. Bytes
behind the headers become zeros. Correct checksums of IPv4 and TCP are correct afterwards; others
become 0. Comments, names and keys in the file are left out.

Input and output can be compressed by gzip (a name that ends in .gz). The same
key gives the same output and the same replacements in all files. Whoever has
it can undo them. It is a line of 160 hexadecimal digits, in a file that only
its owner can read, or with "-" the first line of standard input. Without --key
a random one is used and not kept.

With --addresses, it reads addresses from standard input, one a line, instead
of a capture, and answers each at once with a line: its replacement.

Exit codes: 0 all was replaced; 1 the capture is damaged or cut short, and OUT
has what comes before the damage; 2 the capture cannot be anonymised or OUT not
be written, and there is no OUT, or the command is wrong.`,
		Example: `  mptrace anonymise phone-wlan0.pcapng -o anonymous.pcapng.gz
  (umask 077; openssl rand -hex 80 > key); mptrace anonymise phone-wlan0.pcapng -o a.pcapng --key key`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.file = args[0]
			}
			return runAnonymise(o, bufio.NewReader(c.InOrStdin()), c.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.out, "output", "o", "", "pcapng file to write, which must not exist")
	flags.StringVar(&o.key, "key", "", "file with the key, or - for the first line of standard input (default: a random key)")
	flags.BoolVar(&o.mapping, "mapping", false, "print each replaced address and its replacement, separated by a space")
	flags.BoolVar(&o.addresses, "addresses", false, "replace the addresses on standard input")
	return command
}

func (o *anonymiseOptions) check() error {
	switch {
	case o.addresses && (o.file != "" || o.out != "" || o.mapping):
		return errors.New("--addresses takes no capture, no --output and no --mapping")
	case o.addresses:
		return nil
	case o.file == "":
		return errors.New("no capture given; see mptrace anonymise --help")
	case o.out == "":
		return errors.New("--output: no file given")
	case o.file == "-" && o.key == "-":
		return errors.New("capture and key cannot both be standard input")
	}
	return nil
}

func runAnonymise(o anonymiseOptions, stdin *bufio.Reader, stdout io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	key, err := o.readKey(stdin)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	a := anonymise.New(key)
	w := bufio.NewWriter(stdout)
	if o.addresses {
		return replaceLines(a, stdin, w)
	}
	if o.mapping {
		a.Replaced = func(old, replacement []byte) {
			_, _ = fmt.Fprintln(w, anonymise.Format(old), anonymise.Format(replacement)) // Flush returns the error
		}
	}
	err = anonymiseFile(a, o.file, o.out)
	return errors.Join(err, w.Flush())
}

// readKey returns the key of a file or standard input, or a random one.
func (o *anonymiseOptions) readKey(stdin *bufio.Reader) ([]byte, error) {
	var digits []byte
	var err error
	switch o.key {
	case "":
		key := make([]byte, anonymise.KeySize)
		_, err = rand.Read(key)
		return key, err
	case "-":
		digits, err = readLine(stdin)
	default:
		digits, err = secretfile.Read(o.key)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	key, err := hex.DecodeString(string(digits))
	if err != nil || len(key) != anonymise.KeySize {
		return nil, fmt.Errorf("want a line of %d hexadecimal digits", 2*anonymise.KeySize)
	}
	return key, nil
}

// readLine reads a line of limited length, without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errors.New("a line is too long")
	}
	if err == io.EOF && len(line) > 0 { // without an end
		err = nil
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// replaceLines writes the replacement of each address that it reads, and waits
// for the next one.
func replaceLines(a *anonymise.Addresses, stdin *bufio.Reader, w *bufio.Writer) error {
	for {
		if stdin.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		line, err := readLine(stdin)
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		address, err := anonymise.Parse(string(line))
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		a.Replace(address)
		_, _ = fmt.Fprintln(w, anonymise.Format(address)) // Flush returns the error
	}
}

// anonymiseFile writes a capture, and removes it again if it is incomplete for
// another reason than damage of its source.
func anonymiseFile(a *anonymise.Addresses, name, target string) error {
	in, err := capfile.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	err = anonymiseTo(a, in, out)
	damaged := errors.Is(err, capfile.ErrCut) || errors.Is(err, capfile.ErrDamaged)
	if closeErr := out.Close(); closeErr != nil {
		err, damaged = closeErr, false
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", name, err)
	if damaged {
		return &exitError{exitPartial, err}
	}
	return errors.Join(err, os.Remove(target))
}

// anonymiseTo writes a capture, compressed if the name of the output ends in
// .gz. It returns errors of the output before those of the input.
func anonymiseTo(a *anonymise.Addresses, in *capfile.File, out *os.File) error {
	w := bufio.NewWriterSize(out, 1<<16)
	if !strings.HasSuffix(out.Name(), ".gz") {
		err := a.Rewrite(in, w)
		return cmp.Or(w.Flush(), err)
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestCompression)
	err := a.Rewrite(in, z)
	return cmp.Or(z.Close(), w.Flush(), err)
}
