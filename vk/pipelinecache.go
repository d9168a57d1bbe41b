package vk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// pipelineCache is a VkPipelineCache with the file it is read from and written to. A nil
// one does nothing.
//
// Drivers check a header of their own and trust the rest, and some have crashed on a
// payload that was cut short. So the file has a header of ours before it, with the
// identity of device and driver and a checksum of the whole, and is replaced in one
// step.
type pipelineCache struct {
	d     *Device
	cache vulkan.PipelineCache
	path  string
	dirty atomic.Bool

	hits, misses, unknown atomic.Uint64
}

// CacheStats counts the pipelines that were made with a cache on disk.
type CacheStats struct {
	Hits, Misses uint64 // as the driver says
	Unknown      uint64 // it did not say
}

// CacheStats tells what came of Options.PipelineCache so far; all zero without it.
func (d *Device) CacheStats() CacheStats {
	c := d.cache
	if c == nil {
		return CacheStats{}
	}
	return CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Unknown: c.unknown.Load()}
}

// feedback is where the driver may say what it found, nil if it cannot.
func (c *pipelineCache) feedback(into *abi.Cached) *abi.Cached {
	if c == nil || !c.d.info.Features.CreationFeedback {
		return nil
	}
	return into
}

const (
	cacheMagic   = "VKCPIPE\x01"
	maxCacheFile = 256 << 20
)

// cacheHeader begins a file; all of it must be as expected.
func (d *Device) cacheHeader() []byte {
	h := []byte(cacheMagic)
	h = append(h, d.info.UUID[:]...)
	h = append(h, d.info.DriverUUID[:]...)
	h = append(h, d.info.CacheUUID[:]...)
	return binary.LittleEndian.AppendUint32(h, d.info.DriverRaw)
}

// openCache makes the cache. Whatever is wrong with file or folder costs a log line and
// the time to compile, nothing else.
func (d *Device) openCache(folder string) *pipelineCache {
	name := sha256.Sum256(d.cacheHeader())
	c := &pipelineCache{d: d, path: filepath.Join(folder, fmt.Sprintf("pipelines-%x.bin", name[:8]))}
	payload, err := c.read()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.logger.Warn("vk: pipeline cache ignored", "file", c.path, "reason", err)
	}
	cache, r := d.c.PipelineCache(payload)
	if r < 0 && len(payload) > 0 {
		d.logger.Warn("vk: pipeline cache refused by the driver", "file", c.path, "result", resultText(r))
		cache, r = d.c.PipelineCache(nil)
	}
	if r < 0 {
		d.logger.Warn("vk: no pipeline cache", "result", d.result(r, "vkCreatePipelineCache", ""))
		return nil
	}
	d.born(kindPipelineCache)
	c.cache = handle[vulkan.PipelineCache](cache)
	return c
}

// read returns the payload of the file.
func (c *pipelineCache) read() ([]byte, error) {
	f, err := os.Open(c.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCacheFile+1))
	if err != nil {
		return nil, err
	}
	header := c.d.cacheHeader()
	rest, ok := bytes.CutPrefix(data, header)
	switch {
	case len(data) > maxCacheFile:
		return nil, fmt.Errorf("larger than %d bytes", maxCacheFile)
	case !ok:
		return nil, errors.New("of another device, driver or version, or not a pipeline cache")
	case len(rest) < sha256.Size:
		return nil, fmt.Errorf("cut short at %d bytes", len(data))
	}
	payload := rest[sha256.Size:]
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, fmt.Errorf("damaged: the checksum of its %d bytes is another", len(payload))
	}
	return payload, nil
}

// handle is the VkPipelineCache, 0 for none.
func (c *pipelineCache) handle() uint64 {
	if c == nil {
		return 0
	}
	return bits(c.cache)
}

// made notes a pipeline, after which there may be something to write.
func (c *pipelineCache) made(name string, cached abi.Cached, took time.Duration) {
	if c == nil {
		return
	}
	said := "unknown"
	switch cached {
	case abi.CacheHit:
		said = "hit"
		c.hits.Add(1)
	case abi.CacheMiss:
		said = "miss"
		c.misses.Add(1)
	default:
		c.unknown.Add(1)
	}
	if cached != abi.CacheHit {
		c.dirty.Store(true)
	}
	c.d.logger.Debug("vk: pipeline made", "name", name, "cache", said, "took", took)
}

// SavePipelines writes what was compiled so far to the folder of Options.PipelineCache.
// Close does so too.
func (d *Device) SavePipelines() error {
	if err := d.usable("vkGetPipelineCacheData"); err != nil {
		return err
	}
	return d.cache.save()
}

func (c *pipelineCache) save() error {
	if c == nil || !c.dirty.Swap(false) {
		return nil
	}
	payload, err := c.data()
	if err == nil {
		err = c.write(payload)
	}
	if err != nil {
		c.dirty.Store(true)
		return fmt.Errorf("vk: saving the pipeline cache: %w", err)
	}
	return nil
}

func (c *pipelineCache) data() ([]byte, error) {
	for {
		var size uint
		if err := c.d.result(int32(vulkan.GetPipelineCacheData(c.d.device, c.cache, &size, nil)), "vkGetPipelineCacheData", ""); err != nil {
			return nil, err
		}
		if size == 0 {
			return nil, nil
		}
		payload := make([]byte, size)
		r := vulkan.GetPipelineCacheData(c.d.device, c.cache, &size, unsafe.Pointer(unsafe.SliceData(payload)))
		if r == vulkan.Incomplete {
			continue // it grew meanwhile
		}
		return payload[:size], c.d.result(int32(r), "vkGetPipelineCacheData", "%d bytes", len(payload))
	}
}

// write replaces the file in one step, so that another process never reads half of it.
func (c *pipelineCache) write(payload []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), "pipelines-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	sum := sha256.Sum256(payload)
	_, err = f.Write(append(append(c.d.cacheHeader(), sum[:]...), payload...))
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path)
}

// close saves and destroys the cache. A lost device has nothing to save.
func (c *pipelineCache) close() error {
	if c == nil {
		return nil
	}
	var err error
	if !c.d.lost.Load() {
		err = c.save()
	}
	vulkan.DestroyPipelineCache(c.d.device, c.cache, nil)
	c.d.died(kindPipelineCache)
	return err
}
