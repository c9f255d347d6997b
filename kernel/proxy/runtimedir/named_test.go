package runtimedir

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestNamed(t *testing.T) {
	name := "test-" + strconv.Itoa(os.Getpid())
	path, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(path)
	if again, err := Named(name); err != nil || again != path {
		t.Errorf("%s, %v, want %s", again, err, path)
	}
	d, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a directory that is held: %v", err)
	}
	sweep("/tmp", "attnb-"+strconv.Itoa(os.Getuid())+"-far-test-")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("one that is held was swept: %v", err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Named(name); err == nil {
		t.Error("a directory that others can enter is taken")
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	// One that was left is there for the next process for a while.
	if path, err = Named(name); err != nil {
		t.Fatal(err)
	}
	if d, err = Hold(path); err != nil {
		t.Fatal(err)
	}
	d.lock.Close()
	sweepOwn := func() bool {
		sweep("/tmp", "attnb-"+strconv.Itoa(os.Getuid())+"-")
		_, err := os.Stat(path)
		return err == nil
	}
	if !sweepOwn() {
		t.Error("one that was left just now is swept")
	}
	old := time.Now().Add(-2 * graceOfUnlocked)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if sweepOwn() {
		t.Error("one that was left long ago stays")
	}
	if _, err := Hold(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a directory that is gone: %v", err)
	}
	if err := os.Symlink("/tmp", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Named(name); err == nil {
		t.Error("a link is taken")
	}
}
