// Package rigtest runs tests in private namespaces, where they can create rigs. No program imports it.
package rigtest
