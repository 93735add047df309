// Package anonymise writes captures again, with other addresses and without
// content. Fields that are known to hold neither address nor content stay; all
// other bytes become zeros.
//
//	Addresses  maps addresses to their replacements, by a key
//	frame      link layer and ARP
//	network    IP, ICMP, UDP
//	tcp        TCP, its options, its checksum
//	Rewrite    the blocks of a capture
//
// It decodes no connection: each frame is replaced by itself.
package anonymise
