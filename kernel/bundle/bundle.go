// Package bundle packs an installation into one archive for a machine that has Python and nothing else: no network, no Go, no
// Jupyter. On the archive's first use nothing is compiled but what depends on where it lies.
//
//	run.py, install.py   execute a notebook; tell a Jupyter that is there about the kernel
//	bundle.json          what is in it, and what it needs
//	share/attnb/         an installation with a trimmed Go toolchain
//	gocache/             a build cache with the standard library
//	gomod/               a module cache with what cells may import
//	python/              the Jupyter client, for each version of Python
//	notebooks/           the notebooks and their data
package bundle

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/spec"
)

// Root is the directory that everything in the archive lies in.
const Root = "attnb-bundle"

// MaxSize is the most bytes that a bundle may have, when it is compressed.
const MaxSize = 48_000_000

// Options say what to pack. No field may be empty but the flags.
type Options struct {
	Home         spec.Home
	GoRoot       string   // of the Go toolchain to bring along
	Notebooks    string   // directory
	Requirements string   // requirements.txt, where the Jupyter client's versions are pinned
	Python       string   // one with pip, which fetches the wheels
	Versions     []string // of Python that the bundle is for: "3.10", ...
	Gopls        bool     // bring along gopls too, for completion: 8 MB more
	Version      string   // of attnb
	File         string   // to write: NAME.tar.xz, or NAME.tar to leave it as it is
	Out          io.Writer
}

// TooLargeError says that a bundle would be larger than MaxSize. It is not written.
type TooLargeError struct{ Size int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("bundle: %.1f MB, which is more than %d", float64(e.Size)/1e6, MaxSize/1000000)
}

// manifest is bundle.json.
type manifest struct {
	Version string   `json:"version"`
	CUDA    bool     `json:"cuda"`
	Go      string   `json:"go"`
	Glibc   string   `json:"glibc"` // the oldest that will do
	Python  []string `json:"python"`
}

//go:embed run.py
var runScript []byte

//go:embed install.py
var installScript []byte

// Make writes a bundle.
func Make(ctx context.Context, o Options) (err error) {
	scratch, err := os.MkdirTemp("", "attnb-bundle-*")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	a := archive{}
	m, err := o.describe()
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	for _, part := range []struct {
		name string
		add  func() error
	}{
		{"programs", func() error { return a.addHome("share/attnb", o.Home, o.Gopls) }},
		{"Go toolchain " + m.Go, func() error { return a.addToolchain("share/attnb/go", o.GoRoot) }},
		{"module cache", func() error { return a.addModules(ctx, "gomod", o.Home, o.GoRoot, scratch) }},
		{"build cache", func() error { return a.addBuildCache(ctx, "gocache", o.GoRoot, o.Home.Src(), scratch) }},
		{"Jupyter client for Python " + strings.Join(o.Versions, " "), func() error {
			return a.addWheels(ctx, "python", o.Requirements, o.Python, o.Versions, scratch)
		}},
		{"notebooks", func() error { return a.addTree("notebooks", o.Notebooks, readable) }},
		{"scripts", func() error { return a.addScripts(m) }},
	} {
		before, err := a.size()
		if err == nil {
			err = part.add()
		}
		if err != nil {
			return fmt.Errorf("bundle: %s: %w", part.name, err)
		}
		after, err := a.size()
		if err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		fmt.Fprintf(o.Out, "  %6.1f MB  %s\n", float64(after-before)/1e6, part.name)
	}
	return o.write(ctx, a)
}

func (o Options) write(ctx context.Context, a archive) error {
	start := time.Now()
	size, err := a.writeFile(ctx, o.File, o.Python)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	fmt.Fprintf(o.Out, "wrote %s: %.1f MB, in %.0f s\n", o.File, float64(size)/1e6, time.Since(start).Seconds())
	return nil
}

// readable says whether a file below notebooks/ is one that a reader of notebooks has a use for: not hidden, as what an execution
// leaves behind is, and of a model not the programs that made it.
func readable(rel string, _ bool) bool {
	base := path.Base(rel)
	if strings.HasPrefix(base, ".") || base == "__pycache__" {
		return false
	}
	return !strings.HasPrefix(rel, "models/") || path.Ext(base) != ".py"
}

func (o Options) describe() (manifest, error) {
	text, err := os.ReadFile(filepath.Join(o.GoRoot, "VERSION"))
	if err != nil {
		return manifest{}, err
	}
	goVersion, _, _ := strings.Cut(string(text), "\n")
	cuda, err := hasCUDA(o.Home.Attnb())
	if err != nil {
		return manifest{}, err
	}
	oldest, err := glibc(o.Home.Attnb(), o.Home.Cell(), o.Home.Gonb(), o.Home.Goimports())
	if err != nil {
		return manifest{}, err
	}
	if !cuda {
		fmt.Fprintln(o.Out, "  this attnb was built without CUDA (that takes a C compiler): the bundle computes on cores")
	}
	return manifest{Version: o.Version, CUDA: cuda, Go: strings.TrimPrefix(goVersion, "go"), Glibc: oldest, Python: o.Versions}, nil
}

func (a archive) addScripts(m manifest) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", " ")
	if err := e.Encode(m); err != nil {
		return err
	}
	a.add("bundle.json", text.Bytes())
	a.add("run.py", runScript)
	a.add("install.py", installScript)
	return nil
}
