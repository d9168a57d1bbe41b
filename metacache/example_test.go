package metacache_test

import (
	"fmt"
	"log"

	"vkcompute/metacache"
)

// buffer stands for the handle of a small device buffer.
type buffer string

func build(words []uint64) buffer { return buffer(fmt.Sprint("info", words)) }

func free(b buffer) { fmt.Println("freed", b) }

// A launch looks its info words up, and builds and stores the buffer if that is
// wanted.
func Example() {
	cache, err := metacache.New(metacache.DefaultPolicy(), free)
	if err != nil {
		log.Fatal(err)
	}
	launch := func(words ...uint64) {
		info, hit, miss := cache.Lookup(words)
		if !hit {
			info = build(words)
			if miss.Wanted() {
				if info, err = miss.Store(info); err != nil {
					log.Fatal(err)
				}
			} else {
				defer free(info) // nobody else has it
			}
		}
		fmt.Println("launch with", info, "hit:", hit)
	}
	launch(1024, 1)
	launch(512, 2)
	launch(1024, 1)
	fmt.Println("entries:", cache.Len())
	if err := cache.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// launch with info[1024 1] hit: false
	// launch with info[512 2] hit: false
	// launch with info[1024 1] hit: true
	// entries: 2
	// freed info[512 2]
	// freed info[1024 1]
}

// What a capture touches stays until the graph it became is released.
func ExampleCapture() {
	cache, err := metacache.New(metacache.DefaultPolicy(), free)
	if err != nil {
		log.Fatal(err)
	}
	capture, err := cache.Begin()
	if err != nil {
		log.Fatal(err)
	}
	words := []uint64{64, 64}
	if _, hit, miss := capture.Lookup(words); !hit {
		if _, err := miss.Store(build(words)); err != nil {
			log.Fatal(err)
		}
	}
	const graph metacache.GraphID = 1
	if err := capture.Commit(graph); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cache.Clear())

	fmt.Println("graph was known:", cache.GraphRelease(graph))
	// Output:
	// metacache: entries are pinned: clear wants none, found 1 entries of 16 bytes pinned by 1 graphs and 0 running captures; release the graphs first, or use ClearUnpinned
	// freed info[64 64]
	// graph was known: true
}

// Memory pools can be installed anew only when nothing is alive in them: first
// everything goes that can, and what is left belongs to graphs.
func ExampleCache_ClearUnpinned() {
	cache, err := metacache.New(metacache.DefaultPolicy(), free)
	if err != nil {
		log.Fatal(err)
	}
	install := func() {
		cache.ClearUnpinned()
		if s := cache.Stats(); s.PinnedEntries > 0 {
			fmt.Println("refused:", s.PinnedEntries, "infos belong to graphs")
			return
		}
		fmt.Println("installed")
	}
	if _, err := cache.Insert([]uint64{1}, build([]uint64{1})); err != nil {
		log.Fatal(err)
	}
	capture, err := cache.Begin()
	if err != nil {
		log.Fatal(err)
	}
	_, _, miss := capture.Lookup([]uint64{2})
	if _, err := miss.Store(build([]uint64{2})); err != nil {
		log.Fatal(err)
	}
	if err := capture.Commit(7); err != nil {
		log.Fatal(err)
	}
	install()
	cache.GraphRelease(7)
	install()
	// Output:
	// freed info[1]
	// refused: 1 infos belong to graphs
	// freed info[2]
	// installed
}
