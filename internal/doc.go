// Package internal groups what several programs of this module share and no other
// module should use. What only one program needs belongs in that program. Package
// rules checks who imports whom.
package internal
