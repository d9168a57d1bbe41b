package shaders

import "fmt"

// These mirror matmul.comp.
const (
	matDepth = 16 // of a staged slice
	matPatch = 4  // side of a patch that is loaded directly
	// matAcross is the fewest invocations of a group along N: with fewer than a vector of
	// them llvmpipe (Mesa 22.3.6) gives wrong results, without an error.
	matAcross = MinTileAcross
)

// Specialisation constants of matmul.comp.
const (
	matRowsID   = 3
	matColsID   = 4
	matStagedID = 5
)

// MatMulTile is the tile of the matrix product with its defaults filled in, as far as
// it does not depend on a device's limits: Across and Down are the most that Spec may
// choose.
func (t Tuning) MatMulTile() Tile {
	tile := t.MatMul
	if tile.Operands != StagedOperands && tile.Operands != DirectOperands {
		tile.Operands = StagedOperands
		if t.Reads == Scattered {
			tile.Operands = DirectOperands
		}
	}
	def, least := Tile{Across: 16, Down: 16, Rows: 4, Cols: 4}, uint32(1)
	if tile.Operands == DirectOperands {
		// Twice as many rows are a little faster on llvmpipe and take it three times as
		// long to compile.
		def, least = Tile{Across: 16, Down: 1, Rows: 8, Cols: 16}, matPatch
	}
	fill := func(v *uint32, def, least, most uint32) {
		if *v == 0 {
			*v = def
		}
		*v = powerBelow(max(least, min(*v, most)))
	}
	fill(&tile.Across, def.Across, matAcross, MaxTileSide)
	fill(&tile.Down, def.Down, 1, MaxTileSide)
	fill(&tile.Rows, def.Rows, least, MaxTileBlock)
	fill(&tile.Cols, def.Cols, least, MaxTileBlock)
	return tile
}

// tileWorkgroup brings a tile within a device's limits.
func tileWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	tile := limits.Tuning.MatMulTile()
	shared, staged := limits.SharedBytes, uint32(1)
	if shared == 0 {
		shared = 16 << 10 // what every Vulkan device has
	}
	if tile.Operands == DirectOperands {
		staged = 0
	}
	x := powerBelow(min(tile.Across, limits.Size[0]))
	y := powerBelow(min(tile.Down, limits.Size[1]))
	for x > 1 || y > 1 {
		if x*y <= limits.Invocations && sharedOf(tile, x, y) <= shared {
			break
		}
		// The axis that spans more results gives way, but x keeps its least as long as y can:
		// one row of matAcross fits what every Vulkan device has.
		if x == 1 || y > 1 && (x <= matAcross || y*tile.Rows >= x*tile.Cols) {
			y /= 2
		} else {
			x /= 2
		}
	}
	return []SpecConst{
		{ID: 0, Value: x}, {ID: 1, Value: y},
		{ID: matRowsID, Value: tile.Rows}, {ID: matColsID, Value: tile.Cols}, {ID: matStagedID, Value: staged},
	}, [3]uint32{x, y, 1}
}

// sharedOf is the bytes of the slices of both factors.
func sharedOf(tile Tile, x, y uint32) uint32 {
	if tile.Operands == DirectOperands {
		return 8
	}
	return 4*matDepth*(tile.Rows*y+tile.Cols*x) + 8
}

// patches is the word that tells matmul.comp how to load four elements at a time, 0
// where it cannot. The last axes of the nest are M and N; aK and bK are the strides of
// the factors along K. Along K what is left of a patch is done one by one, along M and
// N nothing may be left.
func patches(n *nest, aK, bK int) uint32 {
	fours := func(v int) bool { return v%matPatch == 0 }
	rows, cols := n.rank-2, n.rank-1
	aM, bN := n.stride[1][rows], n.stride[2][cols]
	word := uint32(matPatch)
	switch {
	case aK == 1 && fours(aM):
	case aM == 1 && fours(aK) && fours(n.shape[rows]):
		word |= 1
	default:
		return 0
	}
	switch {
	case bN == 1 && fours(bK) && fours(n.shape[cols]):
	case bK == 1 && fours(bN):
		word |= 2
	default:
		return 0
	}
	for t := 1; t <= 2; t++ {
		if !fours(n.offset[t]) {
			return 0
		}
		for d := range rows {
			if !fours(n.stride[t][d]) {
				return 0
			}
		}
	}
	return word
}

func planMatMul(env Env, ops []Operand, p *Plan) error {
	a, b, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout
	for i := range ops {
		if ops[i].Rank < 2 {
			return shapeError(i, "2 axes or more", &ops[i].Layout)
		}
	}
	ra, rb, ro := a.Rank-2, b.Rank-2, out.Rank-2
	m, n, k := out.Shape[ro], out.Shape[ro+1], a.Shape[ra+1]
	switch {
	case a.Shape[ra] != m:
		return shapeError(0, "[… M K] with the M of out's "+shapeOf(out), a)
	case b.Shape[rb] != k:
		return shapeError(1, "[… K N] with the K of a's "+shapeOf(a), b)
	case b.Shape[rb+1] != n:
		return shapeError(1, "[… K N] with the N of out's "+shapeOf(out), b)
	}
	var batch nest
	ba, bb, bo := *a, *b, *out
	ba.Rank, bb.Rank, bo.Rank = ra, rb, ro
	batch.lead(&bo)
	if !batch.broadcast(&ba) {
		return shapeError(0, "batch axes that broadcast to those of out's "+shapeOf(out), a)
	}
	if !batch.broadcast(&bb) {
		return shapeError(1, "batch axes that broadcast to those of out's "+shapeOf(out), b)
	}
	batches := batch.len()
	if batches == 0 || m == 0 || n == 0 {
		return nil
	}
	batch.normalise()
	batch.axis(m, out.Stride[ro], a.Stride[ra], 0)
	batch.axis(n, out.Stride[ro+1], 0, b.Stride[rb+1])

	tile := env.Tuning.MatMulTile()
	fours := uint32(0)
	rounds := k / matDepth
	if tile.Operands == DirectOperands {
		fours = patches(&batch, a.Stride[ra+1], b.Stride[rb])
		if rounds = k; fours != 0 {
			rounds = k / matPatch
		}
	}
	if rounds > 2*maxRounds {
		return &OperandError{Index: 0, Problem: BadGrid, Want: "a shorter K, or MatVec", Found: fmt.Sprint(k)}
	}
	// A tile is a group's, or with direct operands an invocation's.
	down, across, perGroup := int(env.WorkgroupSize[1]), int(env.WorkgroupSize[0]), 1
	if tile.Operands == DirectOperands {
		down, across, perGroup = 1, 1, down*across
	}
	tm := ceilDiv(m, int(tile.Rows)*down)
	tn := ceilDiv(n, int(tile.Cols)*across)
	tiles := batches * tm * tn // at most the number of results
	w := infoWriter{words: p.Info}
	w.put(uint32(tiles))
	w.put(uint32(m))
	w.put(uint32(n))
	w.put(uint32(k))
	w.put(uint32(tm))
	w.put(uint32(tn))
	w.put(fours)
	rows, cols := batch.rank-2, batch.rank-1
	// The nest holds the axes of out; a and b have K in the place of one of them.
	view := batch
	view.shape[cols], view.stride[1][cols] = k, a.Stride[ra+1]
	w.view(&view, 1)
	view = batch
	view.shape[rows], view.stride[2][rows] = k, b.Stride[rb]
	w.view(&view, 2)
	w.view(&batch, 0)
	p.Info = w.words
	line(p, tiles, perGroup)
	return nil
}
