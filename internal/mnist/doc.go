// Package mnist reads handwritten digits in the IDX format of the MNIST database.
//
// Load reads the four files of the database from a folder, plain or gzipped; they are
// small enough to be held in memory as the bytes they are. A file that is not what it
// should be is an error matching ErrFile that says what was wanted and what was found.
// Nothing is allocated beyond what a file holds, whatever its header says.
//
// Set is a plain value that nobody changes after Load.
package mnist
