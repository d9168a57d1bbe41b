package mlp

import "math"

// Reference is the loss of a batch and the gradients of all weights, in float64.
func Reference(s Sizes, weights, images []float32, labels []int32) (loss float64, gradients []float64) {
	w1, b1, w2, _ := s.bounds()
	gradients = make([]float64, len(weights))
	h := make([]float64, s.Hidden)
	dh := make([]float64, s.Hidden)
	z := make([]float64, s.Classes)
	n := float64(len(labels))
	for row, label := range labels {
		x := images[row*s.Inputs : (row+1)*s.Inputs]
		for j := range h {
			h[j] = float64(weights[w1+j])
		}
		for i, v := range x {
			if v == 0 {
				continue
			}
			for j, w := range weights[i*s.Hidden : (i+1)*s.Hidden] {
				h[j] += float64(v) * float64(w)
			}
		}
		most := math.Inf(-1)
		for c := range z {
			z[c] = float64(weights[w2+c])
			for j, v := range h {
				z[c] += max(v, 0) * float64(weights[b1+j*s.Classes+c])
			}
			most = max(most, z[c])
		}
		sum := 0.0
		for _, v := range z {
			sum += math.Exp(v - most)
		}
		loss += (math.Log(sum) + most - z[label]) / n
		clear(dh)
		for c, v := range z {
			d := math.Exp(v-most) / sum
			if c == int(label) {
				d--
			}
			d /= n
			gradients[w2+c] += d
			for j, v := range h {
				if v > 0 {
					gradients[b1+j*s.Classes+c] += v * d
					dh[j] += float64(weights[b1+j*s.Classes+c]) * d
				}
			}
		}
		for j, d := range dh {
			gradients[w1+j] += d
		}
		for i, v := range x {
			if v == 0 {
				continue
			}
			row := gradients[i*s.Hidden : (i+1)*s.Hidden]
			for j, d := range dh {
				row[j] += float64(v) * d
			}
		}
	}
	return loss, gradients
}
