// Package policy decides which traffic uses which paths: an ordered list of
// rules, of which the first that matches a flow counts (nikravesh2016 §4.2).
//
// A rule's action is to block a flow, to let it past the proxy, or a scheme: a
// scheduler and the paths that it may use. Schemes have one-byte labels, by
// which the phone tells the proxy how to treat the flow on the way down.
//
// Finding out the phone's state belongs to conditions, applying a scheme to a session
// to schemes.
package policy
