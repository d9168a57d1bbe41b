package shaders

// line sets the grid for n pieces of work, per group as given, in x alone.
func line(p *Plan, n, perGroup int) {
	p.Groups = [3]uint64{uint64(ceilDiv(n, perGroup)), 1, 1}
}

func planNop(_ Env, _ []Operand, p *Plan) error {
	p.Info = append(p.Info, 0)
	p.Groups = [3]uint64{1, 1, 1}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
