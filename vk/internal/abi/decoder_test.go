package abi_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/vk/internal/abi"
	"vkcompute/vk/internal/decodertest"
)

func start(tb testing.TB) *decodertest.Decoder { return decodertest.Start(tb, ".", "../decodertest") }

func head(operation, words, a uint64) uint64 { return operation | words<<8 | a<<32 }

// model decodes a stream a second time, from what abi.h says about it.
func model(words []uint64, flags uint32) (a decodertest.Answer) {
	say := func(format string, args ...any) { a.Calls = append(a.Calls, fmt.Sprintf(format, args...)) }
	hexOf := func(w []uint64, n uint64) string {
		var b []byte
		for _, v := range w {
			b = binary.NativeEndian.AppendUint64(b, v)
		}
		return fmt.Sprintf("%x", b[:n])
	}
	say("Begin cb %d", flags)
	rest := words
	for len(rest) > 0 {
		operation, n, arg := rest[0]&0xff, rest[0]>>8&0xffffff, rest[0]>>32
		good := n >= 1 && n <= uint64(len(rest))
		var w []uint64
		if good {
			w = rest[:n]
			lengths := map[uint64]uint64{abi.OpPipeline: 2, abi.OpSet: 3, abi.OpSetDynamic: 3, abi.OpDispatch: 2, abi.OpDispatchIndirect: 3,
				abi.OpBarrier: 3, abi.OpCopy: 6, abi.OpFill: 4, abi.OpTimestamp: 3, abi.OpResetQueries: 3, abi.OpCopyQueries: 5}
			switch operation {
			case abi.OpPush:
				good = n >= 3 && arg > 0 && arg%4 == 0 && arg <= 8*(n-2)
			case abi.OpUpdate:
				good = n >= 4 && arg > 0 && arg%4 == 0 && arg <= 8*(n-3) && arg <= 65536
			default:
				good = lengths[operation] == n
			}
		}
		if !good {
			say("End cb")
			say("Begin cb %d", flags)
			say("End cb")
			a.Result, a.At = abi.BadStream, uint64(len(words)-len(rest))
			return a
		}
		lo, hi := func(v uint64) uint32 { return uint32(v) }, func(v uint64) uint32 { return uint32(v >> 32) }
		switch operation {
		case abi.OpPipeline:
			say("BindPipeline cb 1 %x", w[1])
		case abi.OpSet:
			say("BindSets cb 1 %x 0 %x", w[1], w[2])
		case abi.OpSetDynamic:
			say("BindSets cb 1 %x 0 %x +%d", w[1], w[2], arg)
		case abi.OpPush:
			say("Push cb %x 20 0 %s", w[1], hexOf(w[2:], arg))
		case abi.OpDispatch:
			say("Dispatch cb %d %d %d", arg, lo(w[1]), hi(w[1]))
		case abi.OpDispatchIndirect:
			say("DispatchIndirect cb %x %d", w[1], w[2])
		case abi.OpBarrier:
			say("Barrier cb %x %x 0 %x %x", lo(w[1]), hi(w[1]), lo(w[2]), hi(w[2]))
		case abi.OpCopy:
			say("Copy cb %x %x %d %d %d", w[1], w[2], w[3], w[4], w[5])
		case abi.OpFill:
			say("Fill cb %x %d %d %d", w[1], w[2], w[3], arg)
		case abi.OpUpdate:
			say("Update cb %x %d %s", w[1], w[2], hexOf(w[3:], arg))
		case abi.OpTimestamp:
			say("Timestamp cb %x %x %d", lo(w[2]), w[1], arg)
		case abi.OpResetQueries:
			say("ResetQueries cb %x %d %d", w[1], arg, lo(w[2]))
		case abi.OpCopyQueries:
			say("CopyQueries cb %x %d %d %x %d 8 3", w[1], arg, lo(w[2]), w[3], w[4])
		}
		rest = rest[n:]
	}
	say("End cb")
	return a
}

// modelSets does the same for descriptor programs.
func modelSets(words []uint64, capacity uint32) (a decodertest.Answer) {
	bad := func() decodertest.Answer { a.Result = abi.BadStream; return a }
	for rest := words; len(rest) > 0; a.At++ {
		if len(rest) < 2 || a.At == uint64(capacity) {
			return bad()
		}
		layout, n := rest[0], rest[1]
		if rest = rest[2:]; n > uint64(abi.MaxBindings) || uint64(len(rest)) < 4*n {
			return bad()
		}
		a.Calls = append(a.Calls, fmt.Sprintf("AllocateSets b001 %x", layout))
		update := fmt.Sprintf("UpdateSets %d", n)
		for range n {
			update += fmt.Sprintf(" [%d+0 %d %x %d %d]", uint32(rest[0]), rest[0]>>32, rest[1], rest[2], rest[3])
			rest = rest[4:]
		}
		a.Calls = append(a.Calls, update)
	}
	return a
}

// wellFormed makes a stream of n random commands, each valid.
func wellFormed(r *rand.Rand, n int) (words []uint64) {
	fixed := [][2]uint64{{abi.OpPipeline, 2}, {abi.OpSet, 3}, {abi.OpSetDynamic, 3}, {abi.OpDispatch, 2}, {abi.OpDispatchIndirect, 3}, {abi.OpBarrier, 3},
		{abi.OpCopy, 6}, {abi.OpFill, 4}, {abi.OpTimestamp, 3}, {abi.OpResetQueries, 3}, {abi.OpCopyQueries, 5}}
	for range n {
		operation, length, arg := uint64(0), uint64(0), uint64(r.Uint32())
		if k := r.IntN(len(fixed) + 2); k < len(fixed) {
			operation, length = fixed[k][0], fixed[k][1]
		} else {
			arg = 4 * (1 + r.Uint64N(40))
			operation, length = abi.OpPush, 2+(arg+7)/8
			if k == len(fixed) {
				operation, length = abi.OpUpdate, length+1
			}
		}
		words = append(words, head(operation, length, arg))
		for range length - 1 {
			words = append(words, r.Uint64())
		}
	}
	return words
}

func TestDecoderSaysWhatTheModelSays(t *testing.T) {
	d := start(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		words := wellFormed(r, r.IntN(12))
		require.Equal(t, model(words, 1), d.Record(t, words, 1, 0))
		if len(words) == 0 {
			continue
		}
		// Cut anywhere, a stream ends within a command or between two.
		cut := words[:r.IntN(len(words))]
		require.Equal(t, model(cut, 4), d.Record(t, cut, 4, 0))
		words[r.IntN(len(words))] ^= 1 << r.IntN(64)
		require.Equal(t, model(words, 0), d.Record(t, words, 0, 0))
	}
}

func TestDecoderRefusesWrongLengths(t *testing.T) {
	d := start(t)
	for operation := range uint64(abi.OpCopyQueries + 4) { // 0 and those beyond the last are unknown
		for n := range uint64(9) {
			for _, arg := range []uint64{0, 3, 4, 8, 32, 64, 65536, 65540, 1<<32 - 4, 1<<32 - 1} {
				words := make([]uint64, max(n, 1))
				words[0] = head(operation, n, arg)
				want := model(words, 0)
				require.Equal(t, want, d.Record(t, words, 0, 0), "operation %d of %d words, a = %d", operation, n, arg)
			}
		}
	}
	// The largest update, one value more, and one value more than the words hold.
	for _, op := range []uint64{abi.OpPush, abi.OpUpdate} {
		words := make([]uint64, 3+8193)
		for _, arg := range []uint64{65536, 65540, 65552, 65556} {
			words[0] = head(op, uint64(len(words)), arg)
			require.Equal(t, model(words, 0), d.Record(t, words, 0, 0))
		}
	}
}

// A stream refused half way leaves a command buffer with nothing in it.
func TestRefusedStreamLeavesAnEmptyCommandBuffer(t *testing.T) {
	a := start(t).Record(t, []uint64{head(abi.OpDispatch, 2, 1), 1, 0}, 0, 0)
	require.Equal(t, []string{"Begin cb 0", "Dispatch cb 1 1 0", "End cb", "Begin cb 0", "End cb"}, a.Calls)
	require.Equal(t, abi.BadStream, a.Result)
	require.Equal(t, uint64(2), a.At)
}

func TestDecoderPassesTheDriversErrorsOn(t *testing.T) {
	d := start(t)
	words := []uint64{head(abi.OpDispatch, 2, 1), 1}
	require.Equal(t, decodertest.Answer{Calls: []string{"Begin cb 0"}, Result: -1}, d.Record(t, words, 0, 1))
	require.Equal(t, int32(-1), d.Record(t, words, 0, 2).Result)
	// Beginning again after a bad stream fails: still a bad stream, and no End.
	a := d.Record(t, []uint64{0}, 0, 3)
	require.Equal(t, decodertest.Answer{Calls: []string{"Begin cb 0", "End cb", "Begin cb 0"}, Result: abi.BadStream}, a)
}

func TestSetsDecoder(t *testing.T) {
	d := start(t)
	full := []uint64{7, uint64(abi.MaxBindings)}
	for i := range uint64(abi.MaxBindings) {
		full = append(full, i|9<<32, 100+i, i, 1)
	}
	require.Equal(t, modelSets(full, 1), d.Sets(t, full, 1, 0))
	require.Len(t, modelSets(full, 1).Calls, 2)
	for cut := range full {
		require.Equal(t, modelSets(full[:cut], 1), d.Sets(t, full[:cut], 1, 0))
	}
	over := append([]uint64{7, uint64(abi.MaxBindings) + 1}, make([]uint64, 4*(abi.MaxBindings+1))...)
	require.Equal(t, abi.BadStream, d.Sets(t, over, 1, 0).Result)
	// More sets than there is room for handles.
	require.Equal(t, decodertest.Answer{Calls: []string{"AllocateSets b001 1", "UpdateSets 0"}, Result: abi.BadStream, At: 1}, d.Sets(t, []uint64{1, 0, 2, 0}, 1, 0))
	// The second set fails: one was made.
	require.Equal(t, decodertest.Answer{Calls: []string{"AllocateSets b001 1", "UpdateSets 0", "AllocateSets b001 2"}, Result: -1, At: 1}, d.Sets(t, []uint64{1, 0, 2, 0}, 2, 2))
}

func toWords(raw []byte) []uint64 {
	words := make([]uint64, len(raw)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return words
}

func toBytes(words []uint64) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func FuzzRecord(f *testing.F) {
	d := start(f)
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 8 {
		f.Add(toBytes(wellFormed(r, n)))
	}
	f.Add(toBytes([]uint64{head(abi.OpPush, 0xffffff, 1<<32-4), 1, 2}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		words := toWords(raw)
		require.Equal(t, model(words, 1), d.Record(t, words, 1, 0))
	})
}

func FuzzSets(f *testing.F) {
	d := start(f)
	f.Add(toBytes([]uint64{7, 1, 3 | 9<<32, 1, 2, 3, 8, 0}), uint32(2))
	f.Add(toBytes([]uint64{7, 1 << 62, 0, 0, 0, 0}), uint32(1))
	f.Add([]byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, raw []byte, capacity uint32) {
		capacity %= 64
		words := toWords(raw)
		require.Equal(t, modelSets(words, capacity), d.Sets(t, words, capacity, 0))
	})
}
