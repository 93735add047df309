// Package report turns the records of a run into Markdown: medians with their spread, ratios, and targets that are met
// or missed. It measures nothing, so a stored run yields the same report.
package report
