package store

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/attnb/attnb/cudaops"
)

// Remains says what is lost: "Lost are \"k\", \"q\" and 2 tensors without a name".
func (s *Store) Remains() string {
	s.mu.Lock()
	defer s.Unlock()
	var named []string
	unnamed := len(s.tensors)
	seen := map[*Tensor]bool{}
	for name, n := range s.names {
		named = append(named, Quote(name))
		if !seen[n.t] {
			seen[n.t] = true
			unnamed--
		}
	}
	return lossWords(named, unnamed)
}

// lossWords lists names, most of them at least.
func lossWords(named []string, unnamed int) string {
	const most = 12
	slices.Sort(named)
	var parts []string
	parts = append(parts, named[:min(len(named), most)]...)
	if more := len(named) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more names", more))
	}
	switch {
	case unnamed == 1:
		parts = append(parts, "a tensor without a name")
	case unnamed > 1:
		parts = append(parts, fmt.Sprintf("%d tensors without a name", unnamed))
	}
	switch n := len(parts); n {
	case 0:
		return "No tensor is lost"
	case 1:
		return "Lost is " + parts[0]
	default:
		return "Lost are " + strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

// Largest says what the device can hold, total bytes, and which tensors take most of it.
func (s *Store) Largest(total int64) string {
	const most = 4
	type holding struct {
		what  string
		bytes int64
		id    int
	}
	byMemory := map[cudaops.Memory]holding{}
	s.mu.Lock()
	for _, t := range s.tensors {
		m := t.arr.Buf.View().Mem
		h := holding{t.Node.Called() + " " + ShapeWords(t.Node.Shape, t.Node.Axes), 4 * int64(m.Len()), t.id}
		if have, ok := byMemory[m]; !ok || t.Name != "" && (h.id < have.id || !strings.HasPrefix(have.what, `"`)) {
			byMemory[m] = h
		}
	}
	s.Unlock()
	var all []holding
	for _, h := range byMemory {
		all = append(all, h)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].bytes > all[j].bytes || all[i].bytes == all[j].bytes && all[i].id < all[j].id
	})
	var words []string
	for _, h := range all[:min(len(all), most)] {
		words = append(words, fmt.Sprintf("%s %s", h.what, BytesWords(h.bytes)))
	}
	if more := len(all) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	room := ""
	if total > 0 {
		room = "; there are " + BytesWords(total) + " in all"
	}
	if len(words) == 0 {
		return room
	}
	return room + "; in use: " + strings.Join(words, ", ")
}

// Clear ends every tensor.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.Unlock()
	for _, t := range s.tensors {
		s.end(t)
	}
	clear(s.names)
}

// Record is what is to outlive the process: the names, sorted, why those of earlier processes were lost, and how many changes of
// names there were.
func (s *Store) Record() (names []string, lost map[string]string, changes int) {
	s.mu.Lock()
	defer s.Unlock()
	for name := range s.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, maps.Clone(s.lost), s.changes
}

// SetLost notes why names of an earlier process are gone.
func (s *Store) SetLost(lost map[string]string) {
	s.mu.Lock()
	defer s.Unlock()
	s.lost = lost
}

// SetCell notes which cell runs.
func (s *Store) SetCell(n int) {
	s.mu.Lock()
	defer s.Unlock()
	s.cell = n
}

// CellNow is the cell that runs, or ran last; 0 where none did.
func (s *Store) CellNow() int {
	s.mu.Lock()
	defer s.Unlock()
	return s.cell
}

// Count is how many tensors there are.
func (s *Store) Count() int {
	s.mu.Lock()
	defer s.Unlock()
	return len(s.tensors)
}

// NameChanges counts the names that came and went.
func (s *Store) NameChanges() int {
	s.mu.Lock()
	defer s.Unlock()
	return s.changes
}
