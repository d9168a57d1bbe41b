package mnist

import (
	"errors"
	"fmt"
	"io/fs"
)

// Classes is the number of digits.
const Classes = 10

// Set is images with their labels.
type Set struct {
	Count  int
	Pixels int    // of an image
	Images []byte // Count rows of Pixels, 0 is background
	Labels []byte // 0 to 9
}

// Validate reports lengths that do not go together and labels that are no digits.
func (s *Set) Validate() error {
	if len(s.Images) != s.Count*s.Pixels || len(s.Labels) != s.Count {
		return fmt.Errorf("%w: %d bytes of images and %d labels, want %d images of %d", ErrFile, len(s.Images), len(s.Labels), s.Count, s.Pixels)
	}
	for i, l := range s.Labels {
		if l >= Classes {
			return fmt.Errorf("%w: label %d is %d, want 0 to %d", ErrFile, i, l, Classes-1)
		}
	}
	return nil
}

// Load reads the images to learn from and those to test with, from the files of the
// database by their names, with or without .gz.
func Load(dir fs.FS) (train, test *Set, err error) {
	if train, err = load(dir, "train"); err != nil {
		return nil, nil, err
	}
	if test, err = load(dir, "t10k"); err != nil {
		return nil, nil, err
	}
	if train.Pixels != test.Pixels {
		return nil, nil, fmt.Errorf("%w: training images of %d pixels, test images of %d", ErrFile, train.Pixels, test.Pixels)
	}
	return train, test, nil
}

func load(dir fs.FS, part string) (*Set, error) {
	shape, images, err := readFile(dir, part+"-images-idx3-ubyte")
	if err != nil {
		return nil, err
	}
	if len(shape) != 3 {
		return nil, fmt.Errorf("%s-images-idx3-ubyte: %w: extents %v, want those of images, rows and columns", part, ErrFile, shape)
	}
	count, labels, err := readFile(dir, part+"-labels-idx1-ubyte")
	if err != nil {
		return nil, err
	}
	if len(count) != 1 || count[0] != shape[0] {
		return nil, fmt.Errorf("%s-labels-idx1-ubyte: %w: extents %v, want %d for as many images", part, ErrFile, count, shape[0])
	}
	s := &Set{Count: shape[0], Pixels: shape[1] * shape[2], Images: images, Labels: labels}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	return s, nil
}

func readFile(dir fs.FS, name string) ([]int, []byte, error) {
	f, err := dir.Open(name + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		var plain error
		if f, plain = dir.Open(name); plain != nil {
			return nil, nil, fmt.Errorf("%w, and %s neither", err, name)
		}
	} else if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	shape, data, err := ReadIDX(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return shape, data, nil
}
