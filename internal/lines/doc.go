// Package lines reads text files line by line, with a maximum line length, and
// adds file and line to errors. The caller interprets the lines.
package lines
