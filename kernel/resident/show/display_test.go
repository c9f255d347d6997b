package show

import (
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

func TestDisplays(t *testing.T) {
	ds := newDisplays()
	of := func(n int) wire.Display {
		return wire.Display{Parts: []wire.Part{{MIME: "text/plain", Data: make([]byte, n)}}}
	}
	first, err := ds.put(of(1))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := ds.take(first); err != nil || len(d.Parts[0].Data) != 1 {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := ds.take(first); err == nil || err.Error() != "display d1 is no longer held" {
		t.Errorf("taken twice: %v", err)
	}
	if _, err := ds.put(of(wire.MaxFrame)); err == nil {
		t.Error("a display larger than a frame")
	}
	// Eight of 48 MiB are more than is held: the oldest go.
	var ids []string
	for range 8 {
		id, err := ds.put(of(48 << 20))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if ds.bytes > maxDisplayBytes || ds.count() != 5 {
		t.Errorf("%d displays of %d bytes are held", ds.count(), ds.bytes)
	}
	if _, err := ds.take(ids[0]); err == nil {
		t.Error("the oldest is still held")
	}
	if _, err := ds.take(ids[7]); err != nil {
		t.Error(err)
	}
	for range maxDisplays + 10 {
		if _, err := ds.put(of(0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := ds.count(); n != maxDisplays {
		t.Errorf("%d displays are held, want %d", n, maxDisplays)
	}
}
