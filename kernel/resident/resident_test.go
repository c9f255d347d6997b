package resident

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

func TestLifetimes(t *testing.T) {
	p := onHost(t)
	const matrix = 4 * 6 * 4 // bytes of a [6, 4] matrix

	a := p.dial()
	x := a.random(1, fused, 6, 4)
	a.name(x, "x")
	a.random(2, fused, 6, 4) // unnamed
	p.settle(2 * matrix)
	a.Close()
	p.settle(matrix) // the name outlives its connection

	b := p.dial()
	x = b.get("x")
	y := b.random(3, fused, 6, 4)
	b.name(y, "x") // replaces, but b holds a handle of the old one
	p.settle(2 * matrix)
	if got := b.download(x); len(got) != 24 {
		t.Errorf("the replaced tensor has %d values", len(got))
	}
	b.name(y, "y")
	b.name(y, "x") // again: nothing changes
	b.Close()
	p.settle(matrix)

	c := p.dial()
	c.do(wire.Request{Kind: wire.KindFree, Name: "x"})
	c.get("y") // the other name holds it
	c.do(wire.Request{Kind: wire.KindFree, Name: "y"})
	p.settle(matrix) // c still has a handle
	c.Close()
	p.settle(0)
}

func TestLineageHoldsLeavesOnly(t *testing.T) {
	p := onHost(t)
	const block = 4 * 2 * 3 * 4 // bytes of [2, 3, 4]
	a := p.dial()
	x := a.random(1, hsd, 2, 3, 4)
	turned := a.run1(wire.OpRoPE, wire.Params{Rotary: 4}, x)
	sum := a.run1(wire.OpAdd, wire.Params{}, turned, turned)
	a.name(sum, "sum")
	p.settle(3 * block)
	a.Close()
	p.settle(2 * block) // sum and its leaf; not what lies between

	b := p.dial()
	sum = b.get("sum")
	if v := b.check(sum).Verdict; !v.Pass || v.Cells != 24 {
		t.Errorf("check of a chain whose middle is gone: %+v", v)
	}
	b.do(wire.Request{Kind: wire.KindFree, IDs: []int{sum.ID}})
	p.settle(0) // and its lineage with it
	b.Close()
}

func TestFreedLeaf(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.random(1, hsd, 2, 3, 4)
	c.name(x, "x")
	turned := c.run1(wire.OpRoPE, wire.Params{Rotary: 4}, x)
	c.name(turned, "turned")
	sum := c.run1(wire.OpAdd, wire.Params{}, turned, turned)
	c.do(wire.Request{Kind: wire.KindFree, IDs: []int{x.ID}})
	p.settle(2 * 96)

	a := c.check(sum)
	const note = `note: checked only from "turned" [heads 2, seq 3, dim 4] on: "x", which it came from, was freed`
	if !a.Verdict.Pass || !contains(a.Text, note) {
		t.Errorf("verdict %+v, want a pass and %q in\n%s", a.Verdict, note, a.Text)
	}
	_, err := c.Do(wire.Request{Kind: wire.KindCheck, IDs: []int{turned.ID}})
	if want := `Check: "turned" cannot be replayed: its leaf "x" [heads 2, seq 3, dim 4] was freed`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	for _, name := range []string{"x"} {
		if _, err := c.Do(wire.Request{Kind: wire.KindGet, Name: name}); err == nil {
			t.Errorf("%q still has a tensor", name)
		}
	}
}

func TestListAndCells(t *testing.T) {
	p := onHost(t)
	a, b := p.dial(), p.dial()
	defer a.Close()
	defer b.Close()
	if err := a.Cell(7); err != nil {
		t.Fatal(err)
	}
	x := b.random(1, fused, 2, 3)
	b.name(x, "x")
	b.random(2, fused, 2, 3)
	mine := a.do(wire.Request{Kind: wire.KindList}).Tensors
	if len(mine) != 1 || mine[0].Name != "x" || mine[0].Cell != 7 || mine[0].Made != "FromSlice" {
		t.Errorf("a sees %+v, want x of cell 7 alone", mine)
	}
	if all := b.do(wire.Request{Kind: wire.KindList}).Tensors; len(all) != 2 {
		t.Errorf("b sees %d tensors, want 2", len(all))
	}
	s, err := a.Status()
	if err != nil || s.Backend != "host" || s.Tensors != 2 || s.InUse != 48 || s.PID != os.Getpid() {
		t.Errorf("status %+v, %v", s, err)
	}
}

func TestOnce(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	once := func(hash string) int {
		return len(c.do(wire.Request{Kind: wire.KindOnce, Name: "x", Hash: hash}).Tensors)
	}
	if once("h1") != 0 {
		t.Error("a tensor before there was one")
	}
	x := c.random(1, fused, 2, 3)
	c.do(wire.Request{Kind: wire.KindName, IDs: []int{x.ID}, Name: "x", Hash: "h1"})
	if once("h1") != 1 || once("h2") != 0 {
		t.Error("want the tensor under h1, and none under h2")
	}
	c.name(x, "x") // by hand: no declaration made it
	if once("h1") != 0 {
		t.Error("a tensor named by hand passes for that of a declaration")
	}
}

func TestServeRefusesAnOccupiedSocket(t *testing.T) {
	p := onHost(t)
	if err := Serve(context.Background(), Options{Socket: p.socket, Device: p.d}); err == nil {
		t.Error("a second server on the same socket")
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Serve(context.Background(), Options{Socket: filepath.Join(open, "s"), Device: p.d}); err == nil {
		t.Error("a socket that others can reach")
	}
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(private, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Serve(context.Background(), Options{Socket: file, Device: p.d}); err == nil {
		t.Error("a server in place of a file")
	}
	info, err := os.Stat(p.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
	}
}

// A socket that a dead process left behind is replaced.
func TestServeReplacesAStaleSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	ctx, stop := context.WithCancel(context.Background())
	d := cudaops.NewDevice(host.New(host.Options{}))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Options{Socket: path, Device: d}) }()
	p := &process{t: t, socket: path}
	p.dial().Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestEnds(t *testing.T) {
	serve := func(t *testing.T, lifeline *os.File) (string, chan error) {
		dir, err := os.MkdirTemp("", "attnb")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		path, served := filepath.Join(dir, "s"), make(chan error, 1)
		d := cudaops.NewDevice(host.New(host.Options{}))
		go func() { served <- Serve(context.Background(), Options{Socket: path, Device: d, Lifeline: lifeline}) }()
		return path, served
	}
	ended := func(t *testing.T, served chan error) {
		t.Helper()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("still serving")
		}
	}
	t.Run("shutdown", func(t *testing.T) {
		path, served := serve(t, nil)
		c := (&process{t: t, socket: path}).dial()
		defer c.Close()
		if err := c.Shutdown(); err != nil { // the answer still arrives
			t.Error(err)
		}
		ended(t, served)
	})
	t.Run("lifeline", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		path, served := serve(t, r)
		c := (&process{t: t, socket: path}).dial()
		defer c.Close() // an open connection does not hold it up
		w.Close()
		ended(t, served)
	})
}
