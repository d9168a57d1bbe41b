package cmdbuf

import "vkcompute/shaders"

// Parameter is a named argument of a graph with its present value.
type Parameter struct {
	Name   string
	Kind   shaders.ParamKind
	DType  shaders.DType
	Value  Scalar         // of a scalar
	Layout shaders.Layout // of a tensor
	Uses   int            // launches it stands in
}

// Parameters lists the graph's named arguments, in the order in which the capture met
// them. Set changes them.
func (g *Graph) Parameters() []Parameter {
	g.stream.mu.Lock()
	defer g.stream.mu.Unlock()
	var list []Parameter
	for _, p := range g.ops.params {
		q := Parameter{Name: p.name, Kind: shaders.ScalarParam, DType: p.dtype, Value: Scalar{p.bits, p.dtype}, Uses: len(p.uses)}
		if p.tensor {
			q.Kind, q.Value, q.Layout = shaders.TensorParam, Scalar{}, g.ops.layouts[p.layout]
		}
		list = append(list, q)
	}
	return list
}
