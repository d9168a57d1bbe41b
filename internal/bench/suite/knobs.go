package suite

import (
	"fmt"
	"slices"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// knob is a value of a tuning to be searched, with the kernels that show its effect.
type knob struct {
	name    string
	kernels []string // none: all
	values  func(best shaders.Tuning) []choice
}

type choice struct {
	name   string
	tuning shaders.Tuning
}

// knobs are in the order in which they are searched: what changes most comes first.
func knobs() []knob {
	return []knob{
		{name: "reads", values: func(best shaders.Tuning) (list []choice) {
			for _, r := range []shaders.ReadPattern{shaders.Coalesced, shaders.Scattered} {
				t := best
				t.Reads = r
				list = append(list, choice{r.String(), t})
			}
			return list
		}},
		{name: "groups", kernels: []string{"add", "sum", "matvec"}, values: func(best shaders.Tuning) (list []choice) {
			now := best.Groups
			if now == 0 {
				now = 1024 // as the kernels take it
			}
			for _, n := range []uint32{max(now/4, 1), max(now/2, 1), 2 * now, 4 * now} {
				t := best
				t.Groups = n
				list = append(list, choice{fmt.Sprint(n), t})
			}
			return list
		}},
		{name: "workgroup", kernels: []string{"add", "sum", "matvec"}, values: func(best shaders.Tuning) (list []choice) {
			sizes := []uint32{32, 64, 128, 256, 512}
			if best.Reads == shaders.Scattered {
				sizes = append([]uint32{8, 16}, sizes...)
			}
			t := best
			t.Workgroup = 0 // of each kernel another one
			list = append(list, choice{"what suits each kernel", t})
			for _, n := range sizes {
				t.Workgroup = n
				list = append(list, choice{fmt.Sprint(n), t})
			}
			return list
		}},
		// Elsewhere rows are not multiplied in blocks.
		{name: "vector rows", kernels: []string{"matvec"}, values: func(best shaders.Tuning) (list []choice) {
			now := best.VectorRows
			if now == 0 {
				now = 8 // as the kernels take it
			}
			for n := uint32(1); n <= shaders.MaxTileBlock && best.Reads == shaders.Scattered; n *= 2 {
				if t := best; n != now {
					t.VectorRows = n
					list = append(list, choice{fmt.Sprint(n), t})
				}
			}
			return list
		}},
		{name: "tile", kernels: []string{"matmul"}, values: func(best shaders.Tuning) (list []choice) {
			for _, m := range tiles(best.MatMulTile()) {
				t := best
				t.MatMul = m
				list = append(list, choice{fmt.Sprintf("%v %d×%d of %d×%d", m.Operands, m.Down, m.Across, m.Rows, m.Cols), t})
			}
			return list
		}},
	}
}

// tiles are those to try: blocks of results beside each other's in groups of several
// sizes, by the path that reads call for, and one of each form of the other.
func tiles(now shaders.Tile) (list []shaders.Tile) {
	blocks := [][2]uint32{{4, 4}, {4, 8}, {8, 4}, {8, 8}}
	groups := [][2]uint32{{8, 8}, {8, 16}, {16, 16}}
	if now.Operands == shaders.DirectOperands {
		blocks = [][2]uint32{{4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 8}, {16, 16}}
		groups = [][2]uint32{{1, 8}, {1, 16}, {1, 32}}
	}
	for _, b := range blocks {
		for _, g := range groups {
			t := shaders.Tile{Operands: now.Operands, Down: g[0], Across: g[1], Rows: b[0], Cols: b[1]}
			if t != now {
				list = append(list, t)
			}
		}
	}
	other := shaders.StagedOperands
	if now.Operands == shaders.StagedOperands {
		other = shaders.DirectOperands
	}
	return append(list, shaders.Tuning{MatMul: shaders.Tile{Operands: other}}.MatMulTile())
}

// candidates are what a knob may be set to, without what a device cannot use, and what is
// there already.
func (k *knob) candidates(best shaders.Tuning, d vk.DeviceInfo) []choice {
	seen := map[shaders.Tuning]bool{best: true}
	return slices.DeleteFunc(k.values(best), func(c choice) bool {
		out := seen[c.tuning] || cmdbuf.CheckTuning(d, c.tuning) != nil
		seen[c.tuning] = true
		return out
	})
}
