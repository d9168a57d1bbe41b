package shaders_test

import (
	"fmt"

	"vkcompute/shaders"
)

// Planning adds a row to each row of a matrix, without a device.
func ExampleKernel_Plan() {
	_, size := shaders.Add.Spec(shaders.MaxWorkgroup{Invocations: 256, Size: [3]uint32{256, 256, 64}})
	matrix := shaders.Operand{Layout: shaders.Contiguous(1000, 1000), DType: shaders.Float32}
	row := shaders.Operand{Layout: shaders.Contiguous(1000), DType: shaders.Float32}

	var plan shaders.Plan
	err := shaders.Add.Plan(shaders.Env{WorkgroupSize: size}, []shaders.Operand{matrix, row, matrix}, &plan)
	fmt.Println(err, plan.Groups, len(plan.Info))

	err = shaders.Add.Plan(shaders.Env{WorkgroupSize: size}, []shaders.Operand{row, matrix, row}, &plan)
	fmt.Println(err)
	// Output:
	// <nil> [977 1 1] 14
	// shaders: add: parameter 1 (b): shape: want one that broadcasts to [1000], found [1000 1000]
}
