// Package graphfile reads and writes the file of a saved graph. It knows bytes and the
// rules between them, no device: what comes out of it is consistent, and a damaged or
// hostile file is an error that names the byte.
//
// # Why a format of its own
//
// A graph is saved as what was asked for, not as what was recorded: kernels, memory,
// layouts, arguments, in the order of their execution. Info words, folded grids,
// alignments and barriers belong to one device and are worked out anew where the graph is
// loaded. So a file written on one vendor's driver runs on another's.
//
// # The file
//
// All numbers are little endian. A file begins with a header of 16 bytes:
//
//	8 bytes   89 56 4b 47 0d 0a 1a 0a   "\x89VKG\r\n\x1a\n": what is not binary-safe breaks it
//	u32       version, 1
//	u32       CRC-32C of the 12 bytes before
//
// and then has sections, each exactly once and in this order, but for "init", of which
// there are as many as the contents need:
//
//	4 bytes   name
//	u64       length of the body
//	u32       CRC-32C of the 12 bytes before
//	          body
//	u32       CRC-32C of the body
//
// No byte lies outside of a checksum, and the length is checked before it is believed.
// The bodies, where str is a u32 length and as many bytes, and each list a u32 count and
// as many elements:
//
//	note   str device, str comment
//	code   list of modules: list of u32 SPIR-V words
//	kern   list of kernels: str name, str entry point, u32 module, u8 grid mode,
//	       list of parameters: str name, u8 kind, u8 element type, u8 access, u32 binding
//	memo   list of memories: u64 bytes, u8 1 if contents follow, else 0
//	layo   list of layouts: u8 rank, i64 offset, per axis i64 extent and i64 stride
//	view   list of named views: str name, u8 element type, u32 memory, u32 layout
//	para   list of parameters: str name, u8 kind, u8 element type,
//	       and of a tensor u32 memory, u32 layout, of a scalar u32 bits
//	oper   list of operations, see below
//	host   the bytes of all uploads, one after the other
//	init   u32 memory, u64 offset, up to 1 MiB of its contents
//	done   u64 bytes of the file before this section
//
// An operation is a u8 kind and
//
//	0 launch             u32 kernel, an argument for each of the kernel's parameters
//	1 indirect launch    the same, then the grid: u32 memory, u64 offset of three u32
//	2 copy               source and target: u32 memory, u64 offset each; u64 bytes
//	3 fill               u32 memory, u64 offset, u64 bytes, u32 value
//	4 upload             u32 memory, u64 offset, u64 bytes
//
// and an argument a u8 kind and
//
//	0 scalar             u8 element type, u32 bits
//	1 tensor             u8 element type, u32 memory, u32 layout
//	2 parameter          u32 index of the parameter, whose value it has
//
// There is one file for each graph: nothing is optional, no byte is spare. What was read
// and is written again is the same file.
//
// # Life cycle
//
// A Reader gives the File, all but the contents, from Graph, and then the contents block
// by block from Next, until io.EOF says that the file was complete. A Writer is the
// reverse: Graph, Block for each block, Close.
//
// # Errors and limits
//
// What is wrong with the bytes is an *Error. What the underlying reader or writer returns
// is passed on, wrapped. Memory grows with the bytes that are there, not with the numbers
// they spell: a length is believed as far as data follows it.
package graphfile
