// Package xplot writes diagrams for xplot (Shepard, MIT), jPlot and the like:
// time-sequence, throughput and round trips of each direction that carried
// data, as tcptrace (-S -T -A250 -R) and mptcptrace (-s) draw them.
//
// The files are {c2s,s2c}_{seq,tput,rtt}_N.xpl, where N is the connection_id
// of the tables.
//
//   - seq, plain TCP: data white between arrows, what was sent again red with
//     R, acknowledgements green, the right edge of the window yellow, selective
//     acknowledgements purple with S, repeated acknowledgements as ticks.
//   - seq, MPTCP: data by data sequence number in the colour of its subflow,
//     arrows where mappings begin and end; R in the colour of the subflow that
//     carried the data before where another one does again, r where TCP does;
//     DATA_ACKs white, the right edge of the window yellow.
//   - tput: new data per second, over 250 segments with payload (red) and since
//     the first (blue).
//   - rtt: from new data to the acknowledgement that covers it, for plain TCP
//     without what was sent again (Karn).
package xplot
