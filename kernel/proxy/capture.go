package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// uncapture takes our markers out of the file that %capture wrote: gonb puts all of a cell's stdout there.
func (e *execution) uncapture() {
	for _, c := range e.text.Commands {
		words := c.Words()
		if c.Kind != '%' || c.Name() != "capture" || len(words) < 2 {
			continue
		}
		path, err := e.k.gonb.path(words[len(words)-1])
		if err != nil {
			continue
		}
		if err := stripMarkers(path, e.k.nonce); err != nil {
			e.k.log.Warn("captured output keeps its markers", "error", err)
		}
	}
}

// path is the file that a command names, which may begin with ~/ or hold variables of the environment, from gonb's directory on: %cd moves
// gonb, not us.
func (g *gonb) path(name string) (string, error) {
	path := os.ExpandEnv(name)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", g.cmd.Process.Pid))
	if err != nil {
		return "", fmt.Errorf("%s: which directory that is in is not known here: give the whole path", name)
	}
	return filepath.Join(dir, path), nil
}

func stripMarkers(path, nonce string) error {
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), nonce) {
		return err
	}
	s := wire.NewScanner(nonce)
	var kept []byte
	for _, p := range append(s.Feed(text), s.Flush()...) {
		kept = append(kept, p.Text...)
	}
	return os.WriteFile(path, kept, 0o644)
}
