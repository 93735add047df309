package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mplab/analysis/mptrace/tables"
)

func newManCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "man [COMMAND] [-o DIR]",
		Short: "Print the manual pages",
		Long: `man prints the manual page of mptrace or of one of its commands, as roff. With
-o it writes all pages as files: mptrace.1, mptrace-capture.1 and so on.

"mptrace completion" prints completions for shells.`,
		Example: `  mptrace man | man -l -
  mptrace man -o ~/.local/share/man/man1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir != "" {
				if len(args) > 0 {
					return fmt.Errorf("man: -o writes the pages of all commands. Leave out %q", args[0])
				}
				return writePages(c.Root(), dir)
			}
			page := c.Root()
			if len(args) > 0 {
				at := slices.IndexFunc(documented(page), func(c *cobra.Command) bool { return c.Name() == args[0] })
				if at < 0 {
					return fmt.Errorf("man: %q is not a command. See mptrace --help", args[0])
				}
				page = documented(page)[at]
			}
			_, err := c.OutOrStdout().Write(manPage(page))
			return err
		},
	}
	command.Flags().StringVarP(&dir, "output", "o", "", "write all pages into this directory")
	return command
}

// documented returns the subcommands that have a page.
func documented(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
}

func writePages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &exitError{exitPartial, err}
	}
	for _, c := range append(documented(root), root) {
		if err := tables.WriteFile(filepath.Join(dir, pageName(c)+".1"), manPage(c)); err != nil {
			return &exitError{exitPartial, err}
		}
	}
	return nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the manual page of a command, in the macros of man(7).
// Cobra's own generator is not used: it reads the descriptions as Markdown and
// joins the lines of their lists.
func manPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	name := pageName(c)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"mptrace %s\" \"User Commands\"\n", escaped(strings.ToUpper(name)), escaped(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escaped(name), escaped(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escaped(c.CommandPath()))
	b.WriteString(lines(strings.TrimSpace(strings.TrimPrefix(c.UseLine(), c.CommandPath()))))
	b.WriteString(".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(strings.TrimSpace(c.Long), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			verbatim(&b, paragraph)
		} else {
			b.WriteString(lines(paragraph))
		}
	}
	options(&b, c)
	commands(&b, c)
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		verbatim(&b, c.Example)
	}
	seeAlso(&b, c)
	return b.Bytes()
}

func options(b *bytes.Buffer, c *cobra.Command) {
	first := true
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		if first {
			b.WriteString(".SH OPTIONS\n")
			first = false
		}
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		value, usage := pflag.UnquoteUsage(f)
		switch {
		case value != "" && f.NoOptDefVal != "":
			value = `[=\fI` + escaped(value) + `\fR]`
			usage += " (default " + f.NoOptDefVal + ")"
		case value != "":
			value = ` \fI` + escaped(value) + `\fR`
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR%s\n", escaped(f.Name), value)
		switch f.DefValue {
		case "", "0", "false", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		b.WriteString(lines(usage))
	})
}

func commands(b *bytes.Buffer, c *cobra.Command) {
	if len(documented(c)) > 0 {
		b.WriteString(".SH COMMANDS\n")
	}
	for _, sub := range documented(c) {
		fmt.Fprintf(b, ".TP\n.B %s\n%s", escaped(sub.CommandPath()), lines(sub.Short))
	}
}

func seeAlso(b *bytes.Buffer, c *cobra.Command) {
	pages := documented(c)
	if c.HasParent() {
		pages = []*cobra.Command{c.Parent()}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", escaped(pageName(page)), end)
	}
}

// verbatim writes text without filling its lines.
func verbatim(b *bytes.Buffer, text string) { b.WriteString(".nf\n" + lines(text) + ".fi\n") }

// lines returns text lines, none of which roff takes for a request.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = escaped(strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// escaped keeps backslashes, hyphens, quotes and carets of the text, so that
// commands can be copied from the page.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}
