package main

import (
	"bufio"

	"github.com/spf13/cobra"

	"mplab/analysis/mptrace/tables"
)

func newSchemaCommand() *cobra.Command {
	var json bool
	command := &cobra.Command{
		Use:   "schema [--json]",
		Short: "Describe the tables and their columns",
		Long:  "schema describes every table and column, with type and unit, in Markdown or JSON.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := bufio.NewWriter(c.OutOrStdout())
			write := tables.WriteSchemaMarkdown
			if json {
				write = tables.WriteSchemaJSON
			}
			if err := write(w); err != nil {
				return err
			}
			return w.Flush()
		},
	}
	command.Flags().BoolVar(&json, "json", false, "as JSON")
	return command
}
