// Package names records the names of addresses in DNS answers.
package names
