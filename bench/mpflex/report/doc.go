// Package report turns the records of a run into Markdown: medians with their spread,
// ratios, and the targets that are met or missed. It measures nothing: the report of a
// stored run is the same.
package report
