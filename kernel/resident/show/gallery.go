package show

import (
	"context"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Gallery holds what is shown: displays until they are fetched, and the pictures that are live.
type Gallery struct {
	own          *store.Client // under which live pictures are made again, whoever asks
	displays     *displays
	explorations *explorations
	maps         liveMaps
}

// New is empty. What is made again works under ctx.
func New(ctx context.Context, d *cudaops.Device, s *store.Store) *Gallery {
	return &Gallery{own: store.NewClient(ctx, d, s), displays: newDisplays(), explorations: newExplorations()}
}

// Put keeps a display until it is fetched, and returns its ID.
func (g *Gallery) Put(d wire.Display) (string, error) { return g.displays.put(d) }

// Waiting is how many displays wait to be fetched.
func (g *Gallery) Waiting() int { return g.displays.count() }

// Close ends all live pictures.
func (g *Gallery) Close() {
	endExplorations(g.own.Store, g.explorations.take(0))
	g.maps.end(0)
}

// SubjectName is what a cell calls a drawing; empty: there is none of the kind.
func SubjectName(s wire.Subject) string { return subjects[s].name }
