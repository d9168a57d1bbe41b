package mlp

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrDiffers: a step that did not compute what the reference does.
var ErrDiffers = errors.New("differs from the float64 reference")

// Tolerance is how far a loss may be off, in parts of it, and a gradient, in parts of the
// greatest.
const Tolerance = 1e-4

// Check makes a step on a batch with these images and labels, and compares its loss and
// all gradients with the reference.
func Check(ctx context.Context, t *Trainer, batch int, images []float32, labels []int32) error {
	weights, err := t.Weights(ctx)
	if err != nil {
		return err
	}
	wantLoss, want := Reference(t.sizes, weights, images, labels)
	if err := t.Step(batch, 0); err != nil {
		return err
	}
	loss, err := t.Loss(ctx)
	if err != nil {
		return err
	}
	if e := math.Abs(float64(loss) - wantLoss); !(e <= Tolerance*math.Abs(wantLoss)) {
		return fmt.Errorf("mlp: %w: loss %v, want %v", ErrDiffers, loss, wantLoss)
	}
	found, err := t.Gradients(ctx)
	if err != nil {
		return err
	}
	most := 0.0
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i, v := range want {
		if e := math.Abs(float64(found[i]) - v); !(e <= Tolerance*most) {
			return fmt.Errorf("mlp: %w: gradient %d is %v, want %v ± %.2g", ErrDiffers, i, found[i], v, Tolerance*most)
		}
	}
	return nil
}
