package scene

// Letters of three by five points, a row in three bits each, the left one highest.
var letters = map[rune][5]uint8{
	'0': {7, 5, 5, 5, 7}, '1': {2, 6, 2, 2, 7}, '2': {7, 1, 7, 4, 7}, '3': {7, 1, 7, 1, 7}, '4': {5, 5, 7, 1, 1},
	'5': {7, 4, 7, 1, 7}, '6': {7, 4, 7, 5, 7}, '7': {7, 1, 1, 2, 2}, '8': {7, 5, 7, 5, 7}, '9': {7, 5, 7, 1, 7},
	'A': {2, 5, 7, 5, 5}, 'B': {6, 5, 6, 5, 6}, 'C': {3, 4, 4, 4, 3}, 'D': {6, 5, 5, 5, 6}, 'E': {7, 4, 6, 4, 7},
	'F': {7, 4, 6, 4, 4}, 'G': {3, 4, 5, 5, 3}, 'H': {5, 5, 7, 5, 5}, 'I': {7, 2, 2, 2, 7}, 'K': {5, 5, 6, 5, 5},
	'L': {4, 4, 4, 4, 7}, 'M': {5, 7, 7, 5, 5}, 'N': {6, 5, 5, 5, 5}, 'O': {2, 5, 5, 5, 2}, 'P': {6, 5, 6, 4, 4},
	'R': {6, 5, 6, 5, 5}, 'S': {3, 4, 2, 1, 6}, 'T': {7, 2, 2, 2, 2}, 'U': {5, 5, 5, 5, 7}, 'V': {5, 5, 5, 5, 2},
	'W': {5, 5, 7, 7, 5}, 'X': {5, 5, 2, 5, 5}, 'Y': {5, 5, 2, 2, 2}, '.': {0, 0, 0, 0, 2}, ',': {0, 0, 0, 2, 4}, '/': {1, 1, 2, 4, 4}, '-': {0, 0, 7, 0, 0}, '%': {5, 1, 2, 4, 5},
}

// Write writes a line of capitals and figures onto a picture of so many pixels a side,
// from a corner at (x, y), each point a square of so many pixels. Around them it is
// darker, so that they show on any ground.
func Write(pixels []uint32, size, x, y, point int, line string) {
	square := func(px, py, side int, paint func(uint32) uint32) {
		for j := max(py, 0); j < min(py+side, size); j++ {
			for i := max(px, 0); i < min(px+side, size); i++ {
				pixels[j*size+i] = paint(pixels[j*size+i])
			}
		}
	}
	for j := max(y-2*point, 0); j < min(y+7*point, size); j++ {
		for i := max(x-2*point, 0); i < min(x+4*point*len(line)+point, size); i++ {
			p := pixels[j*size+i]
			pixels[j*size+i] = p>>2&0x3f3f3f | 0xff000000
		}
	}
	for _, r := range line {
		for row, bits := range letters[r] {
			for column := range 3 {
				if bits>>(2-column)&1 != 0 {
					square(x+column*point, y+row*point, point, func(uint32) uint32 { return 0xffffffff })
				}
			}
		}
		x += 4 * point
	}
}
