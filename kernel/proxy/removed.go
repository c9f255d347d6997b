package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// removed says which part of the runtime directory somebody has removed, without which cells cannot run, and what to do; empty: none.
// Tensors do not live there, and the kernel's own commands reach the device process over the connection that there is.
func (k *Kernel) removed() string {
	for _, path := range []string{k.dir.Path, k.gonb.temp, k.streams.path, k.controls.path, k.device.serving()} {
		if path == "" || !absent(path) {
			continue
		}
		what := k.dir.Path
		if path != what {
			what = filepath.Base(path) + " in " + what
		}
		return fmt.Sprintf("somebody removed %s, without which no Go runs. Tensors are still there: %%save FILE keeps those with a name. Then restart the kernel", what)
	}
	return ""
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// serving is the socket of a device process that there is a connection to; empty: there is none yet.
func (d *device) serving() string {
	d.mu.Lock()
	connected := d.conn != nil
	d.mu.Unlock()
	if !connected {
		return ""
	}
	// One that was started anew puts its socket in the place of the old one, which is then not there for a moment.
	for end := time.Now().Add(500 * time.Millisecond); absent(d.socket) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return d.socket
}
