package show

import (
	"strconv"
	"sync"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Limits of the displays that wait to be fetched: the oldest go first.
const (
	maxDisplays     = 4096
	maxDisplayBytes = 256 << 20
)

// displays holds bundles by ID until the proxy, having met the marker in the cell's stdout, fetches them.
type displays struct {
	mu    sync.Mutex
	byID  map[int]wire.Display
	first int // no older one is held
	next  int
	bytes int
}

func newDisplays() *displays { return &displays{byID: map[int]wire.Display{}, first: 1, next: 1} }

func size(d wire.Display) int {
	n := len(d.Metadata)
	for _, p := range d.Parts {
		n += len(p.Data)
	}
	return n
}

// put keeps a display and returns its ID.
func (ds *displays) put(d wire.Display) (string, error) {
	n := size(d)
	if n > wire.MaxFrame-1<<16 {
		return "", wire.Errorf(wire.Refused, "a display of %s is more than fits", store.BytesWords(int64(n)))
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for len(ds.byID) > 0 && (len(ds.byID) >= maxDisplays || ds.bytes+n > maxDisplayBytes) {
		ds.remove(ds.first)
		ds.first++
	}
	id := ds.next
	ds.next++
	ds.byID[id] = d
	ds.bytes += n
	return "d" + strconv.Itoa(id), nil
}

func (ds *displays) remove(id int) (wire.Display, bool) {
	d, ok := ds.byID[id]
	if ok {
		delete(ds.byID, id)
		ds.bytes -= size(d)
	}
	return d, ok
}

// take returns a display and forgets it.
func (ds *displays) take(name string) (wire.Display, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(name) > 1 && name[0] == 'd' {
		if id, err := strconv.Atoi(name[1:]); err == nil {
			if d, ok := ds.remove(id); ok {
				return d, nil
			}
			if id >= 1 && id < ds.next {
				return wire.Display{}, wire.Errorf(wire.NotFound, "display %s is no longer held", name)
			}
		}
	}
	return wire.Display{}, wire.Errorf(wire.NotFound, "no display %.40q", name)
}

func (ds *displays) count() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.byID)
}

// Show keeps a display that a cell made itself.
func (g *Gallery) Show(r wire.Request) (wire.Answer, error) {
	if r.Display == nil || len(r.Display.Parts) == 0 {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "Show: nothing to show")
	}
	id, err := g.Put(*r.Display)
	return wire.Answer{DisplayID: id}, err
}

// Take hands a display over, once.
func (g *Gallery) Take(r wire.Request) (wire.Answer, error) {
	d, err := g.displays.take(r.Name)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Display: &d}, nil
}
