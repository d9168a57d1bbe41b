package main

import (
	"context"
	"math"
	"testing"

	"vkcompute/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestPlateComesToRest(t *testing.T) {
	testenv.Require(t)
	const size = 24
	p, err := solve(context.Background(), "", size)
	if err != nil {
		t.Fatal(err)
	}
	for y := range size {
		for x := range size {
			if got, want := float64(p.heat[y*size+x]), exact(size, y, x); math.Abs(got-want) > 0.01 {
				t.Fatalf("at %d, %d: %v, the equation gives %v", y, x, got, want)
			}
		}
	}
	if _, err := solve(context.Background(), "", 2); err == nil {
		t.Fatal("a plate without an inside was solved")
	}
}
