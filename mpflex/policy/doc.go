// Package policy decides which traffic uses which paths. It evaluates an ordered list
// of rules; the first rule that matches a flow decides (nikravesh2016 §4.2).
//
// The action of a rule is to block the flow, to connect it without the proxy, or a
// scheme: a scheduler and the paths that it may use. Each scheme has a one-byte label,
// with which the phone tells the proxy the flow's scheme for the way down.
//
// Reading the phone's state belongs to conditions, applying a scheme to a session to
// schemes.
package policy
