package show

import (
	"math/rand/v2"
	"sync"

	"github.com/attnb/attnb/kernel/wire"
)

// liveMaps are the live ones of all notebooks' cells, by ID.
type liveMaps struct {
	mu    sync.Mutex
	byID  map[int]*attentionMap
	order []int // oldest first
}

// add keeps m under a new ID, which it returns.
func (ms *liveMaps) add(m *attentionMap) int {
	ms.mu.Lock()
	id := 0
	for id == 0 || ms.byID[id] != nil {
		id = int(rand.Int64())
	}
	if ms.byID == nil {
		ms.byID = map[int]*attentionMap{}
	}
	ms.byID[id] = m
	ms.order = append(ms.order, id)
	oldest := 0
	if len(ms.order) > MaxLive {
		oldest = ms.order[0]
	}
	ms.mu.Unlock()
	if oldest != 0 {
		ms.end(oldest)
	}
	return id
}

func (ms *liveMaps) get(id int) (*attentionMap, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.byID[id]; m != nil {
		return m, nil
	}
	return nil, wire.Errorf(wire.NotFound, "this picture is no longer live: run its cell again")
}

// end removes a map, or all where id is 0, and gives back what it held. One that is gone already is no error.
func (ms *liveMaps) end(id int) {
	ms.mu.Lock()
	var ended []*attentionMap
	kept := ms.order[:0]
	for _, have := range ms.order {
		if id != 0 && have != id {
			kept = append(kept, have)
			continue
		}
		ended = append(ended, ms.byID[have])
		delete(ms.byID, have)
	}
	ms.order = kept
	ms.mu.Unlock()
	for _, m := range ended {
		m.end()
	}
}
