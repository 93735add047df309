// Package mptcptrace writes the same files as mptcptrace (Hesmans, UCLouvain)
// with -s -S -a -A -R -r 7 -F 3 -G 250 -w 2, so that existing scripts continue
// to work: the same names, columns and formats, with correct values for both
// versions of the protocol. [Differences] lists the intended differences.
package mptcptrace

// Differences lists the differences from mptcptrace, for the manual and for
// mptcptrace.log.
const Differences = `Differences from mptcptrace 0.1:

- Both versions of MPTCP are read (RFC 6824 and RFC 8684), with data sequence numbers and DATA_ACKs of 32 and 64 bits,
  data that comes with MP_CAPABLE, subflows that the server opened, and connections that fall back to TCP.
- Numbers of data begin, as on the wire, after the low 32 bits of the initial data sequence number, and then grow
  beyond 32 bits instead of beginning anew. When the keys were not seen they begin at 1.
- Subflows bear one number everywhere: in order of creation, from 0 in the text (Subflow P), from 1 in every csv file.
  Connections stand in the text in order of creation, too.
- A row of seq is what one segment carried. A mapping that several segments carry makes rows that add up to it, not
  the whole mapping with each. A segment of which a part was carried by another subflow before makes a row for each
  part.
- Reinjected is every byte that another subflow carried before, also when the ranges do not begin at the same number.
  bytesReinjected counts these bytes, reinject_n the rows of new data that n subflows carried in the end,
  reinjectCausedBy the reinjected rows by the subflow that carried the data first.
- seqAcked is payload alone: neither the number before the first byte nor that of DATA_FIN is counted. It has 64 bits.
- acksize counts every byte that is acknowledged for the first time, also those of a mapping that is acknowledged in
  part.
- flight: series 3 (the sum of the subflows' flights) is always in the file of the data's direction. Header lengths of
  IPv6 are not counted.
- rtt_seq_num is csv like the others, in fractions of milliseconds.
- gput: rows begin with the first acknowledgement that moves forward.
- stats have the row beginTime, that analysis scripts look for. Values have no bound of 32 subflows.
- The interface between scripts and program that is the standard output of mptcptrace is the file mptcptrace.out.
  rightEdge, which is always empty, is not written.
- file_stats: counters of states that this program does not have are 0. Warnings of HMACs and keys count in the column
  c2s.
`
