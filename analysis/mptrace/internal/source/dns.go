package source

// portDNS is the only port from which answers are used. Answers of multicast
// DNS (port 5353) contain no question, so the queried name is unknown (RFC 6762
// §6).
const portDNS = 53
