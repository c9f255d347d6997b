package runtimedir

import (
	"errors"
	"os"
	"strconv"
	"testing"
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
	sweep("/tmp", "attnb-"+strconv.Itoa(os.Getuid())+"-test-")
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
