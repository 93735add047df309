// Package rigtest runs tests in private namespaces, where they can make rigs. No
// program imports it.
package rigtest
