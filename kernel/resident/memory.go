package resident

import (
	"fmt"
	"sort"
	"strings"

	"github.com/attnb/attnb/cudaops"
)

// largest says what the device can hold and which tensors take most of it.
func (s *server) largest() string {
	const most = 4
	type holding struct {
		what  string
		bytes int64
		id    int
	}
	byMemory := map[cudaops.Memory]holding{}
	st := s.store
	st.mu.Lock()
	for _, t := range st.tensors {
		m := t.arr.buf.View().Mem
		h := holding{t.node.called() + " " + shapeWords(t.node.shape, t.node.axes), 4 * int64(m.Len()), t.id}
		if have, ok := byMemory[m]; !ok || t.name != "" && (h.id < have.id || !strings.HasPrefix(have.what, `"`)) {
			byMemory[m] = h
		}
	}
	st.unlock()
	var all []holding
	for _, h := range byMemory {
		all = append(all, h)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].bytes > all[j].bytes || all[i].bytes == all[j].bytes && all[i].id < all[j].id
	})
	var words []string
	for _, h := range all[:min(len(all), most)] {
		words = append(words, fmt.Sprintf("%s %s", h.what, bytesWords(h.bytes)))
	}
	if more := len(all) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	room := ""
	if total := s.d.Info().MemoryTotal; total > 0 {
		room = "; there are " + bytesWords(total) + " in all"
	}
	if len(words) == 0 {
		return room
	}
	return room + "; in use: " + strings.Join(words, ", ")
}
