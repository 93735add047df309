// Package strict reads JSON strictly: a key that is unknown, given twice or missing is an error, and errors name the field.
package strict
