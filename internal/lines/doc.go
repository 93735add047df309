// Package lines reads text files line by line, with a bound on their length, and
// says in which file and line an error is. What a line means is for its caller.
package lines
