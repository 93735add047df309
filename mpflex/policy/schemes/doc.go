// Package schemes converts the schemes of a rule file into those of a session. Parsing
// them belongs to policy, applying them to session.
package schemes
