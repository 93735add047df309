// Package internal groups packages that several programs of this module share.
// A package that only one program needs belongs to that program. Package rules
// checks the imports.
package internal
