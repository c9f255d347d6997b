package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/wire"
)

// startLocal is a device process of this machine.
func startLocal(t *testing.T) *wire.Conn {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := attnb("device", "--socket", filepath.Join(dir, "s"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var conn *wire.Conn
	eventually(t, "a device process answers", func() bool {
		var err error
		conn, err = wire.DialAs(filepath.Join(dir, "s"), "")
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A save that is cut short, by the link or by an interrupt, leaves the file that was there.
func TestFarSaveCutShort(t *testing.T) {
	s := startSSHD(t)
	r := startRelay(s, func(o *far.Options) { o.SSH = []string{os.Args[0], slowSSH, "-F", s.config} })
	c, other := r.dial(), r.dial()
	path := filepath.Join(t.TempDir(), "kept.safetensors")
	named(t, c, "y", awkward)
	if _, err := c.Do(wire.Request{Kind: wire.KindSave, Path: path}); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// What comes from there is not slowed: what is sent is.
	failed := make(chan error, 1)
	go func() {
		big := filepath.Join(filepath.Dir(path), "big")
		local := startLocal(t)
		a, err := local.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{2_000_000}, Axes: []string{"dim"}}, random(7, 2_000_000))
		if err == nil {
			_, err = local.Do(wire.Request{Kind: wire.KindName, IDs: []int{a.Tensors[0].ID}, Name: "big"})
		}
		if err == nil {
			_, err = local.Do(wire.Request{Kind: wire.KindSave, Path: big})
		}
		if err == nil {
			_, err = c.Do(wire.Request{Kind: wire.KindRestore, Path: big})
		}
		failed <- err
	}()
	eventually(t, "a file is on its way", func() bool {
		s, err := status(other)
		return err == nil && s.Running == "FromSlice"
	})
	began := time.Now()
	if err := other.Interrupt(); err != nil { // which goes beside what waits
		t.Fatal(err)
	}
	if err := <-failed; err == nil || err.Error() != "Restore: interrupted" {
		t.Errorf("an interrupt: %v", err)
	}
	t.Logf("interrupted after %v", time.Since(began).Round(time.Millisecond))
	if a, err := other.Do(wire.Request{Kind: wire.KindList}); err != nil || len(a.Tensors) != 1 {
		t.Errorf("%+v, %v", a, err)
	}

	r.kill(syscall.SIGKILL)
	if _, err := c.Do(wire.Request{Kind: wire.KindSave, Path: path}); err != nil && !strings.Contains(err.Error(), "the link to 127.0.0.1 was lost") {
		t.Errorf("a link that is lost: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, was) {
		t.Errorf("the file is another one: %v", err)
	}
	if _, err := status(c); err != nil { // a link, to say over that it is over
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
