package cmdbuf

import (
	"reflect"
	"unsafe"
)

// viewer is what every *Tensor is.
type viewer interface{ window() *view }

// window is the view of a tensor that was made, or nil.
func (t *Tensor[T]) window() *view {
	if !t.made() {
		return nil
	}
	return &t.v
}

// home is this package, where all types of arguments are at home: another package can
// make one by embedding, whose methods may panic.
var home = reflect.TypeFor[Scalar]().PkgPath()

// viewOfOther is viewOf for tensors whose elements are of the caller's types.
func viewOfOther(a Arg) *view {
	if t := reflect.TypeOf(a); t.Kind() != reflect.Pointer || t.Elem().PkgPath() != home {
		return nil
	}
	if w, ok := hidden(a).(viewer); ok {
		return w.window()
	}
	return nil
}

// hidden is a without the compiler knowing that it is the same, as strings.Builder hides
// itself: calling a method through an interface counts as keeping its value, and then
// every scalar of every launch would be moved to the heap. The tensor is kept alive by
// whoever passes it, and was there before it was passed; window keeps nothing.
func hidden(a Arg) Arg {
	words := *(*[2]uintptr)(unsafe.Pointer(&a))
	return *(*Arg)(unsafe.Pointer(&words))
}
