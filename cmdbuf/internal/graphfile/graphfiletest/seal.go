// Package graphfiletest takes the file of a saved graph apart and puts it together with
// valid checksums, so that tests reach what lies behind them. It follows the description
// of the format and shares no code with the reader and the writer.
package graphfiletest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Names are the sections that every file has, in order, without the contents and the end.
var Names = [...]string{"note", "code", "kern", "memo", "layo", "view", "para", "oper", "host"}

// Section is one section without checksums.
type Section struct {
	Name string
	Body []byte
	At   int // of the body in the file, set by Split
}

var table = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b, table)) }

// Seal makes a file of sections; the last, which tells the length, it adds itself.
func Seal(list []Section) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("\x89VKG\r\n\x1a\n"), 1)
	b = append(b, sum(b)...)
	add := func(s Section) {
		head := binary.LittleEndian.AppendUint64([]byte(s.Name), uint64(len(s.Body)))
		b = append(append(append(append(b, head...), sum(head)...), s.Body...), sum(s.Body)...)
	}
	for _, s := range list {
		add(s)
	}
	add(Section{Name: "done", Body: binary.LittleEndian.AppendUint64(nil, uint64(len(b)))})
	return b
}

// Split takes a good file apart, without its last section.
func Split(b []byte) ([]Section, error) {
	var list []Section
	for at := 16; ; {
		if len(b) < at+16 {
			return nil, fmt.Errorf("no section at byte %d", at)
		}
		name, n := string(b[at:at+4]), int(binary.LittleEndian.Uint64(b[at+4:]))
		at += 16
		if n < 0 || len(b) < at+n+4 {
			return nil, fmt.Errorf("section %q at byte %d has %d bytes", name, at, n)
		}
		if name == "done" {
			return list, nil
		}
		list = append(list, Section{name, b[at : at+n : at+n], at})
		at += n + 4
	}
}
