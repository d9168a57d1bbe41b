package cmdbuf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"vkcompute/cmdbuf/internal/tunefile"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// ErrTuning: values that a device cannot use, or a file that holds no tuning of it.
var ErrTuning = errors.New("bad tuning")

// DefaultTuning is what a device gets of which nothing was measured. It goes by the kind of
// device, never by a vendor's name, and is valid on every one.
func DefaultTuning(d vk.DeviceInfo) shaders.Tuning {
	if d.Type == vk.CPU {
		return shaders.CPUTuning(runtime.NumCPU())
	}
	return shaders.Tuning{}
}

// CheckTuning reports whether the built-in kernels stay within the limits of a device
// with a tuning, in the sizes of workgroups and what these share, ErrTuning if not.
func CheckTuning(d vk.DeviceInfo, t shaders.Tuning) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("cmdbuf: %w: %w", ErrTuning, err)
	}
	limits := maxWorkgroup(&d.Limits, t)
	for _, k := range shaders.Builtins() {
		_, size := k.Spec(limits)
		invocations := uint64(1)
		for axis, n := range size {
			if n == 0 || n > limits.Size[axis] {
				return fmt.Errorf("cmdbuf: %w: kernel %s: a workgroup of %v: want 1 to %v", ErrTuning, k.Name, size, limits.Size)
			}
			invocations *= uint64(n)
		}
		if invocations > d.Limits.MaxWorkgroupInvocations {
			return fmt.Errorf("cmdbuf: %w: kernel %s: a workgroup of %v: want at most %d invocations", ErrTuning, k.Name, size, d.Limits.MaxWorkgroupInvocations)
		}
		switch shared, err := k.Shared(limits); {
		case err != nil:
			return fmt.Errorf("cmdbuf: %w: %w", ErrTuning, err)
		case uint64(shared) > d.Limits.MaxSharedMemory:
			return fmt.Errorf("cmdbuf: %w: kernel %s: a workgroup of %v shares %d bytes: want at most %d", ErrTuning, k.Name, size, shared, d.Limits.MaxSharedMemory)
		}
	}
	return nil
}

// maxWorkgroup is what kernels choose their workgroups by.
func maxWorkgroup(l *vk.Limits, t shaders.Tuning) shaders.MaxWorkgroup {
	return shaders.MaxWorkgroup{
		Invocations: uint32(min(l.MaxWorkgroupInvocations, 1<<31)),
		Size:        l.MaxWorkgroupSize,
		SharedBytes: uint32(min(l.MaxSharedMemory, 1<<31)),
		Tuning:      t,
	}
}

// tuned names the device as its file of tuning does: by what the file of its pipelines goes
// by, by what else may differ where one driver shows several kinds of device, and by the
// kernels, as what suited others was measured with others.
func tuned(d *vk.DeviceInfo) *tunefile.Device {
	l := &d.Limits
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %x %x %x %d %d %v %d %d %d", d.Name, d.Type, d.UUID, d.DriverUUID, d.CacheUUID, d.DriverRaw,
		l.MaxWorkgroupInvocations, l.MaxWorkgroupSize, l.MaxSharedMemory, l.MaxStorageBufferRange, l.SubgroupSize)
	kernels := shaders.BuiltinsDigest()
	h.Write(kernels[:])
	if d.Type == vk.CPU {
		// A CPU driver is the same on any number of cores, and the tuning is not.
		fmt.Fprintf(h, " %d", runtime.NumCPU())
	}
	f := &tunefile.Device{Name: d.Name + ", " + d.Driver}
	h.Sum(f.Key[:0])
	return f
}

// TuningFile is where LoadTuning and SaveTuning have the tuning of a device: in a folder
// of pipeline caches, beside the one of the device.
func TuningFile(folder string, d vk.DeviceInfo) string { return tuned(&d).Path(folder) }

// SavedTuning is a tuning that was measured once.
type SavedTuning struct {
	shaders.Tuning
	// Comment says where it comes from.
	Comment string
}

// LoadTuning reads the tuning of a device. Without a file the error is fs.ErrNotExist; a
// file that is damaged, of another device, driver or version, or that has values the
// device cannot use, is ErrTuning.
func LoadTuning(folder string, d vk.DeviceInfo) (SavedTuning, error) {
	of := tuned(&d)
	f, err := of.Read(folder)
	if errors.Is(err, tunefile.ErrFile) {
		err = fmt.Errorf("%w: %w", ErrTuning, err)
	}
	if err == nil {
		err = CheckTuning(d, f.Tuning)
	}
	if err != nil {
		return SavedTuning{}, fmt.Errorf("cmdbuf: tuning in %s: %w", of.Path(folder), err)
	}
	return SavedTuning{f.Tuning, f.Comment}, nil
}

// SaveTuning writes the tuning of a device, for the streams of every process that opens it
// with this folder as vk.Options.PipelineCache.
func SaveTuning(folder string, d vk.DeviceInfo, t SavedTuning) error {
	of := tuned(&d)
	err := CheckTuning(d, t.Tuning)
	if err == nil {
		err = of.Write(folder, t.Tuning, t.Comment)
	}
	if err != nil {
		return fmt.Errorf("cmdbuf: saving the tuning in %s: %w", of.Path(folder), err)
	}
	return nil
}

// tune settles the stream's tuning. What is wrong with a file costs a log line and the
// default, nothing else; what is wrong with the option is an error.
func (s *Stream) tune(o *shaders.Tuning) error {
	info := s.dev.Info()
	s.tuning = DefaultTuning(info)
	if o != nil {
		if err := CheckTuning(info, *o); err != nil {
			return err
		}
		s.tuning = *o
		return nil
	}
	folder := s.dev.PipelineFolder()
	if folder == "" {
		return nil
	}
	switch t, err := LoadTuning(folder, info); {
	case err == nil:
		s.tuning = t.Tuning
	case !errors.Is(err, fs.ErrNotExist):
		s.logger.Warn("cmdbuf: tuning ignored, the default is used", "file", TuningFile(folder, info), "reason", err)
	}
	return nil
}

// Tuning is how the stream's kernels use the device: as Options.Tuning or the file beside
// the pipeline cache says, or the default.
func (s *Stream) Tuning() shaders.Tuning { return s.tuning }
