package anonymise

import (
	"io"

	"mplab/analysis/mptrace/capfile"
)

// anyLength marks an option that is kept whatever its length.
const anyLength = -1

// keptOptions maps block type and option code to the length of the options that
// are kept.
var keptOptions = map[uint32]map[uint16]int{
	capfile.BlockInterface: {
		2:  anyLength, // name
		9:  1,         // resolution of the clock
		13: 1,         // length of the frame check sequence
		14: 8,         // offset of the clock
	},
	capfile.BlockStatistics: {2: 8, 3: 8, 4: 8, 5: 8, 6: 8, 7: 8, 8: 8}, // times and counters
	capfile.BlockEnhanced: {
		2: 4, // flags
		4: 8, // number of packets lost before this one
	},
}

// Rewrite writes a pcapng file with replaced frames. Comments, decryption
// secrets, name resolution and blocks of unknown types are left out. If the file
// is cut short or damaged, Rewrite writes the blocks before the damage, and
// returns an error that wraps [capfile.ErrCut] or [capfile.ErrDamaged].
func (a *Addresses) Rewrite(f *capfile.File, w io.Writer) error {
	blocks, err := capfile.NewBlocks(f)
	if err != nil {
		return err
	}
	var out []byte
	for {
		block, err := blocks.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if block.Type == capfile.BlockSection {
			for i := range block.Fields[8:] { // the length of the section changes
				block.Fields[8+i] = 0xff
			}
		}
		if block.Frame != nil {
			if err := a.Frame(block.LinkType, block.Frame); err != nil {
				return err
			}
		}
		options := keptOptions[block.Type]
		out = block.Append(out[:0], func(code uint16, value []byte) bool {
			size, kept := options[code]
			return kept && (size == anyLength || size == len(value))
		})
		if _, err := w.Write(out); err != nil {
			return err
		}
	}
}
