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
		path := os.ExpandEnv(words[len(words)-1])
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				continue
			}
			path = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(path) {
			// %cd moves gonb, not us.
			dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", e.k.gonb.cmd.Process.Pid))
			if err != nil {
				continue
			}
			path = filepath.Join(dir, path)
		}
		if err := stripMarkers(path, e.k.nonce); err != nil {
			e.k.log.Warn("captured output keeps its markers", "error", err)
		}
	}
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
