// Package schemes translates the schemes of a rule file into those of a session. The
// notation belongs to policy, the effect to session.
package schemes
