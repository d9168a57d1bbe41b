package shaders

import (
	"encoding/binary"
	"fmt"
)

// Shared is the bytes of memory that a work group of the kernel shares, specialised for a
// device as Spec does, as far as the lengths of arrays can be evaluated.
func (k *Kernel) Shared(limits MaxWorkgroup) (int, error) {
	if err := k.Err(); err != nil {
		return 0, err
	}
	consts, _ := k.Spec(limits)
	if k.Module.SharedBytes == 0 || len(consts) == 0 {
		return k.Module.SharedBytes, nil
	}
	m, err := Load(specialised(k.Module.Words, consts))
	if err != nil {
		return 0, fmt.Errorf("shaders: kernel %s, specialised: %w", k.Name, err)
	}
	return m.SharedBytes, nil
}

// specialised is the code of a module with other values in the place of the defaults of
// its specialisation constants of 32 bits. The words are those of a module that was loaded,
// so no instruction goes beyond their end.
func specialised(words []uint32, consts []SpecConst) []byte {
	value := map[uint32]uint32{} // by result id; decorations come before constants
	code := make([]byte, 0, 4*len(words))
	for _, w := range words[:spirvHeader] {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	for at := spirvHeader; at < len(words); {
		n := int(words[at] >> 16)
		i := words[at : at+n]
		at += n
		op, last := i[0]&0xffff, i[n-1]
		switch {
		case op == opDecorate && n == 4 && i[2] == decSpecID:
			for _, c := range consts {
				if c.ID == last {
					value[i[1]] = c.Value
				}
			}
		case op == opSpecConstant && n == 4:
			if v, ok := value[i[2]]; ok {
				last = v
			}
		}
		for _, w := range i[:n-1] {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		code = binary.LittleEndian.AppendUint32(code, last)
	}
	return code
}
