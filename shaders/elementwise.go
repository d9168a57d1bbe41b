package shaders

// Opcodes of unary.comp.
const (
	opCopy = iota
	opNeg
	opAbs
	opExp
	opLog
	opSqrt
	opRsqrt
	opTanh
	opSigmoid
	opSilu
	opGelu
	opRelu
	opSquare
	opReciprocal
	opFloatToInt = iota + 3
	opIntToFloat
	opFloatToUint
	opUintToFloat
)

// Opcodes of binary.comp.
const (
	opAdd = iota
	opSub
	opMul
	opDiv
	opMin
	opMax
	opPow
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opSiluMul
	opReluGrad
	opAddInt
	opSubInt
	opMulInt
	opMinInt
	opMaxInt
	opEqualInt
	opLessInt
)

// Element-wise kernels. Inputs are broadcast to out's shape, and out may be the
// same memory as an input of its element type.
//
// Bounds are in units of v, the size of the exact result, and u as in builtin.go;
// 2⁻¹²⁶ comes on top where a result or an operand is denormal, because devices may
// flush it. A NaN gives a NaN where nothing else is said, by a test of its bits.
// The bits of a NaN are kept by Copy, Neg, Abs, ReluGrad (of b) and Where alone.
var (
	// Add: out = a + b. Each element is one rounding of the exact sum: 1u.
	// Whether a NaN stays one is the device's business, here and in Sub, Mul, Div;
	// those that people run keep it.
	Add = builtin("add", load("add"), elementwise2())
	// Sub: out = a - b, as Add.
	Sub = operation("sub", binaryCode, opSub, elementwise2())
	// Mul: out = a · b, as Add.
	Mul = builtin("mul", load("mul"), elementwise2())
	// Div: out = a / b, 5u for |b| within 2^±126.
	Div = operation("div", binaryCode, opDiv, elementwise2())
	// Minimum: out is the lesser of a and b, bit for bit; NaN if one of them is.
	Minimum = operation("minimum", binaryCode, opMin, elementwise2())
	// Maximum: as Minimum.
	Maximum = operation("maximum", binaryCode, opMax, elementwise2())
	// Pow: out = a^b. With t = b·log2|a| the error is (8 + 12|t| + 8|b|)u. Negative a
	// wants a whole b and gives NaN otherwise; infinities, zeros and b = 0 as C's pow.
	Pow = operation("pow", binaryCode, opPow, elementwise2())
	// SiluMul: out = silu(a)·b, the gate of a gated perceptron. (10 + 8|a|)u,
	// however small silu(a) is. -infinity counts as 0.
	SiluMul = operation("silumul", binaryCode, opSiluMul, elementwise2())
	// ReluGrad: out = b where a > 0, else 0: the gradient b passed back through Relu(a).
	ReluGrad = operation("relugrad", binaryCode, opReluGrad, elementwise2())

	// Equal, NotEqual, Less and LessEqual compare float32 and give 1 or 0 as
	// uint32. Exact, denormals included; -0 equals 0; NaN is unequal to everything.
	Equal     = operation("equal", binaryCode, opEqual, elementwise(Uint32, Float32, Float32))
	NotEqual  = operation("notequal", binaryCode, opNotEqual, elementwise(Uint32, Float32, Float32))
	Less      = operation("less", binaryCode, opLess, elementwise(Uint32, Float32, Float32))
	LessEqual = operation("lessequal", binaryCode, opLessEqual, elementwise(Uint32, Float32, Float32))
	// EqualInt and LessInt compare int32.
	EqualInt = operation("equalint", binaryCode, opEqualInt, elementwise(Uint32, Int32, Int32))
	LessInt  = operation("lessint", binaryCode, opLessInt, elementwise(Uint32, Int32, Int32))

	// AddInt, SubInt and MulInt work on int32 and wrap.
	AddInt = operation("addint", binaryCode, opAddInt, elementwise(Int32, Int32, Int32))
	SubInt = operation("subint", binaryCode, opSubInt, elementwise(Int32, Int32, Int32))
	MulInt = operation("mulint", binaryCode, opMulInt, elementwise(Int32, Int32, Int32))
	MinInt = operation("minint", binaryCode, opMinInt, elementwise(Int32, Int32, Int32))
	MaxInt = operation("maxint", binaryCode, opMaxInt, elementwise(Int32, Int32, Int32))

	// Where: out = a where cond is not 0, else b, bit for bit. cond is uint32; a, b
	// and out are of any one 32-bit type.
	Where = builtin("where", load("where"), KernelSpec{
		Params: []Param{
			{Name: "cond", DType: Uint32, Access: Read, Binding: 1},
			{Name: "a", Access: Read, Binding: 2},
			{Name: "b", Access: Read, Binding: 3},
			{Name: "out", Access: Write, Binding: 4},
		},
		Plan: planMap, Grid: FoldedGrid, Spec: walkWorkgroup,
		InPlace: func(out, in int) bool { return out == 3 && in < 3 },
	})

	// Copy: out = x bit for bit, between any layouts, of any 32-bit type.
	Copy = operation("copy", unaryCode, opCopy, elementwise(AnyDType, AnyDType))
	// Neg and Abs change the sign bit alone.
	Neg = operation("neg", unaryCode, opNeg, elementwise1())
	Abs = operation("abs", unaryCode, opAbs, elementwise1())
	// Exp: (8 + 4|x|)u; 0 at -infinity.
	Exp = operation("exp", unaryCode, opExp, elementwise1())
	// Log: 12u, near 1 too. -infinity at 0, NaN below.
	Log = operation("log", unaryCode, opLog, elementwise1())
	// Sqrt: 10u. NaN below 0.
	Sqrt = operation("sqrt", unaryCode, opSqrt, elementwise1())
	// Rsqrt: 1/√x, 4u. Infinite at 0, NaN below.
	Rsqrt = operation("rsqrt", unaryCode, opRsqrt, elementwise1())
	// Tanh: 40u.
	Tanh = operation("tanh", unaryCode, opTanh, elementwise1())
	// Sigmoid: 1/(1+exp(-x)), (10 + 8|x|)u.
	Sigmoid = operation("sigmoid", unaryCode, opSigmoid, elementwise1())
	// Silu: x·sigmoid(x), (12 + 8|x|)u; 0 at -infinity.
	Silu = operation("silu", unaryCode, opSilu, elementwise1())
	// Gelu: ½x(1 + tanh y) with y = √(2/π)(x + 0.044715x³), (14 + 40|y|)u; 0 below
	// -8, where the result is under 10⁻¹³, and x above 8.
	Gelu = operation("gelu", unaryCode, opGelu, elementwise1())
	// Relu: x, or 0 where its sign bit is set. Exact; a NaN stays
	// one, of either sign.
	Relu = operation("relu", unaryCode, opRelu, elementwise1())
	// Square: x², 1u.
	Square = operation("square", unaryCode, opSquare, elementwise1())
	// Reciprocal: 1/x, 5u for |x| within 2^±126; an infinity of x's sign at ±0.
	Reciprocal = operation("reciprocal", unaryCode, opReciprocal, elementwise1())

	// FloatToInt rounds toward 0, saturates, and gives 0 for NaN.
	FloatToInt = operation("floattoint", unaryCode, opFloatToInt, elementwise(Int32, Float32))
	// FloatToUint: as FloatToInt, negative numbers give 0.
	FloatToUint = operation("floattouint", unaryCode, opFloatToUint, elementwise(Uint32, Float32))
	// IntToFloat and UintToFloat: one rounding.
	IntToFloat  = operation("inttofloat", unaryCode, opIntToFloat, elementwise(Float32, Int32))
	UintToFloat = operation("uinttofloat", unaryCode, opUintToFloat, elementwise(Float32, Uint32))
)

func elementwise1() KernelSpec { return elementwise(Float32, Float32) }
func elementwise2() KernelSpec { return elementwise(Float32, Float32, Float32) }

// elementwise is a kernel whose only parameters are its tensors, out last.
func elementwise(out DType, in ...DType) KernelSpec {
	names := [...]string{"a", "b", "c"}
	if len(in) == 1 {
		names[0] = "x"
	}
	spec := KernelSpec{Plan: planMap, Grid: FoldedGrid, Spec: walkWorkgroup}
	for i, t := range in {
		spec.Params = append(spec.Params, Param{Name: names[i], DType: t, Access: Read, Binding: uint32(i + 1)})
	}
	n := len(in)
	spec.Params = append(spec.Params, Param{Name: "out", DType: out, Access: Write, Binding: uint32(n + 1)})
	// Each invocation reads its own elements before it writes them.
	spec.InPlace = func(o, i int) bool { return o == n && i < n }
	return spec
}

// planMap plans a kernel of map.glsl.
func planMap(env Env, ops []Operand, p *Plan) error {
	var n nest
	last := len(ops) - 1
	out := &ops[last].Layout
	n.lead(out)
	for i := range last {
		if !n.broadcast(&ops[i].Layout) {
			return shapeError(i, "one that broadcasts to "+shapeOf(out), &ops[i].Layout)
		}
	}
	if n.len() == 0 {
		return nil
	}
	n.normalise()
	w := infoWriter{words: p.Info}
	n.plan(&env, [walkTensors]along{adjacent, either, either, either}, 0, &w, p)
	p.Info = w.words
	return nil
}
