// Package xplot writes diagrams for xplot (Shepard, MIT), jPlot and compatible
// programs: time-sequence, throughput and round trips of each direction that
// carried data, as tcptrace (-S -T -A250 -R) and mptcptrace (-s) draw them.
//
// The files are {c2s,s2c}_{seq,tput,rtt}_N.xpl, where N is the connection_id of
// the tables.
//
//   - seq, plain TCP: data white between arrows, retransmissions red with R,
//     acknowledgements green, the right edge of the window yellow, selective
//     acknowledgements purple with S, repeated acknowledgements as ticks.
//   - seq, MPTCP: data by data sequence number in the colour of its subflow,
//     with arrows where mappings start and end. Reinjections have an R in the
//     colour of the subflow that carried the data before, TCP retransmissions
//     an r. DATA_ACKs are white, the right edge of the window yellow.
//   - tput: new data per second, over 250 segments with payload (red) and since
//     the first (blue).
//   - rtt: from new data to the acknowledgement that covers it; for plain TCP
//     without retransmitted data (Karn).
package xplot
