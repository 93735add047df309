// Package exit has the exit codes of the program, and errors that carry one.
package exit
