// Package rules says which package of this module may not import which, and why. A
// test checks every package, its tests included. A new rule is a line in rules.go;
// how packages are divided is described in their doc.go.
package rules
