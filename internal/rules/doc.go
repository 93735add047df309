// Package rules defines which packages of this module must not import which
// others, and why. A test checks every package, including tests. To add a rule,
// add a line to rules.go. Each package's doc.go describes its responsibility.
package rules
