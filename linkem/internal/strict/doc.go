// Package strict reads JSON strictly: an unknown, duplicate or missing key is an error, and errors contain the field.
package strict
