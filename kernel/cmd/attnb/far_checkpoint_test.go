package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/wire"
)

// A checkpoint is a file of this machine, whichever has the tensors.
func TestFarCheckpoint(t *testing.T) {
	r := startRelay(startSSHD(t), nil)
	c := r.dial()
	file := filepath.Join(t.TempDir(), "run.safetensors")
	big := random(1, 100_003)
	named(t, c, "big", big)
	named(t, c, "awkward", awkward)
	a, err := c.Do(wire.Request{Kind: wire.KindSave, Path: file})
	if err != nil || len(a.Tensors) != 2 || a.Number != 4*(len(big)+len(awkward)) || a.Text != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() < int64(a.Number) {
		t.Fatal(info, err)
	}
	var refused *wire.Error
	if _, err = c.Do(wire.Request{Kind: wire.KindRestore, Path: file}); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), `Restore: there are tensors "awkward", "big"`) {
		t.Errorf("names in use: %v", err)
	}
	for _, name := range []string{"big", "awkward"} {
		if _, err := c.Do(wire.Request{Kind: wire.KindFree, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole[len(whole)-1] ^= 1
	damaged := file + ".damaged"
	if err := os.WriteFile(damaged, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	d := r.dial()
	for _, bad := range []struct {
		r    wire.Request
		want string
	}{
		{wire.Request{Kind: wire.KindRestore, Path: damaged}, "Restore: " + damaged + ": cut or changed since it was saved: its SHA-256 is another"},
		{wire.Request{Kind: wire.KindRestore, Path: file, Names: []string{"small"}}, `Restore: run.safetensors holds no "small", but `},
		{wire.Request{Kind: wire.KindSave, Path: "/nowhere/x", Names: []string{"big"}}, `Save: no tensor is named "big"`},
		{wire.Request{Kind: wire.KindRestore, Path: "/nowhere/x"}, "Restore: /nowhere/x: no such file"},
	} {
		if _, err := d.Do(bad.r); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), bad.want) {
			t.Errorf("%v, want %s", err, bad.want)
		}
	}
	if a, err = d.Do(wire.Request{Kind: wire.KindList}); err != nil || len(a.Tensors) != 2 {
		t.Errorf("what a file that was damaged had sent is its client's alone, and has no name: %+v, %v", a.Tensors, err)
	}
	d.Close()
	c.Close()
	c = r.dial()
	if a, err = c.Do(wire.Request{Kind: wire.KindRestore, Path: file}); err != nil || len(a.Tensors) != 2 || a.Tensors[0].Made != "restored from run.safetensors" {
		t.Fatalf("%+v, %v", a, err)
	}
	c.Close()
	c = r.dial()
	for name, want := range map[string][]float32{"big": big, "awkward": awkward} {
		a, err := c.Do(wire.Request{Kind: wire.KindGet, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		has(t, c, a.Tensors[0].ID, want)
	}
}

// An interrupt ends a restore whose values are on their way over a slow link, and nothing has a name then.
func TestFarCheckpointInterrupted(t *testing.T) {
	s := startSSHD(t)
	r := startRelay(s, nil)
	c := r.dial()
	file := filepath.Join(t.TempDir(), "run.safetensors")
	for _, name := range []string{"a", "b", "c"} {
		named(t, c, name, random(1, 400_000))
	}
	if _, err := c.Do(wire.Request{Kind: wire.KindSave, Path: file}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	slow := startRelay(s, func(o *far.Options) { o.SSH = []string{os.Args[0], slowSSH, "-F", s.config} })
	c, other := slow.dial(), slow.dial()
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := c.Do(wire.Request{Kind: wire.KindRestore, Path: file}) // 12 s
		ended <- err
	}()
	time.Sleep(500 * time.Millisecond)
	if err := other.Interrupt(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || err.Error() != "Restore: interrupted" {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	c.Close()
	other.Close()
	eventually(t, "nothing is left of it", func() bool {
		c := slow.dial()
		defer c.Close()
		status, err := c.Status()
		return err == nil && status.Tensors == 0
	})
}
