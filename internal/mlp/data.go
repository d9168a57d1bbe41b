package mlp

import (
	"errors"
	"fmt"

	"vkcompute/cmdbuf"
)

// Data is images with labels on a device.
type Data struct {
	Count, Inputs int

	stream *cmdbuf.Stream
	images *cmdbuf.Tensor[float32] // [Count Inputs]
	labels *cmdbuf.Tensor[int32]   // [Count]
	host   []int32                 // the labels
}

// UploadData puts rows of images with their labels on a stream's device.
func UploadData(s *cmdbuf.Stream, images []float32, labels []int32) (*Data, error) {
	if len(labels) == 0 || len(images)%len(labels) != 0 {
		return nil, fmt.Errorf("mlp: %w: %d elements of images and %d labels", ErrSize, len(images), len(labels))
	}
	d := &Data{Count: len(labels), Inputs: len(images) / len(labels), stream: s, host: append([]int32(nil), labels...)}
	var err error
	if d.images, err = cmdbuf.Upload(s, images, d.Count, d.Inputs); err != nil {
		return nil, err
	}
	if d.labels, err = cmdbuf.Upload(s, labels, d.Count); err != nil {
		return nil, errors.Join(err, d.images.Close())
	}
	return d, nil
}

// Batches is how many whole batches of a size there are.
func (d *Data) Batches(size int) int { return d.Count / size }

// batch is rows of the data.
type batch struct {
	images, transposed *cmdbuf.Tensor[float32]
	labels             *cmdbuf.Tensor[int32]
}

func (d *Data) rows(from, to int) (b batch, err error) {
	if b.images, err = d.images.Range(0, from, to, 1); err != nil {
		return b, err
	}
	if b.transposed, err = b.images.Transpose(0, 1); err != nil {
		return b, err
	}
	b.labels, err = d.labels.Range(0, from, to, 1)
	return b, err
}

// Close gives the memory back.
func (d *Data) Close() error { return errors.Join(d.images.Close(), d.labels.Close()) }
