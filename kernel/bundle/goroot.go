package bundle

import (
	"bytes"
	"context"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// goEnv is the trimmed toolchain's go.env: no network, unless the user's environment says otherwise.
const goEnv = "GOPROXY=off\nGOTOOLCHAIN=local\n"

// goTools are what building a cell takes: cells are built without cgo.
var goTools = []string{"asm", "compile", "link"}

// target is the machine that bundles are for.
func target() build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled = "linux", "amd64", false
	return c
}

// addToolchain adds what building cells takes of the Go toolchain at root: the go command, three tools, and the standard
// library's source for the target.
func (a archive) addToolchain(name, root string) error {
	for _, file := range []string{"VERSION", "LICENSE", "bin/go"} {
		if err := a.addFile(path.Join(name, file), filepath.Join(root, file)); err != nil {
			return err
		}
	}
	for _, tool := range goTools {
		file := path.Join("pkg/tool/linux_amd64", tool)
		if err := a.addFile(path.Join(name, file), filepath.Join(root, file)); err != nil {
			return err
		}
	}
	if err := a.addTree(path.Join(name, "pkg/include"), filepath.Join(root, "pkg/include"), nil); err != nil {
		return err
	}
	a.add(path.Join(name, "go.env"), []byte(goEnv))
	src := filepath.Join(root, "src")
	return a.addTree(path.Join(name, "src"), src, func(rel string, isDir bool) bool {
		return rel != "cmd" && buildable(src, rel, isDir)
	})
}

// buildable says whether a file or directory below dir has to do with building packages for the target.
func buildable(dir, rel string, isDir bool) bool {
	base := path.Base(rel)
	switch {
	case isDir:
		return base != "testdata" && !strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "_")
	case strings.HasSuffix(base, "_test.go"):
		return false
	}
	switch path.Ext(base) {
	case ".go", ".s":
		c := target()
		match, err := c.MatchFile(filepath.Join(dir, filepath.FromSlash(path.Dir(rel))), base)
		return match || err != nil
	case ".syso", ".c":
		return false // of cgo and the race detector
	}
	return true
}

// common are the packages of the standard library, beside those that this module needs, that cells find compiled. The others
// are compiled when they are first imported.
var common = strings.Fields(`
	bufio bytes cmp container/heap context encoding/base64 encoding/binary encoding/csv encoding/hex encoding/json errors flag
	fmt html/template image image/color image/png io io/fs iter log maps math math/big math/bits math/cmplx math/rand math/rand/v2
	os os/exec os/signal path path/filepath reflect regexp runtime runtime/debug slices sort strconv strings sync sync/atomic
	text/tabwriter text/template time unicode unicode/utf8`)

// addBuildCache adds a build cache that holds the standard library as cells need it: compiling that takes 45 s on one core,
// and its objects depend on no path. The rest is compiled on the machine itself, because it does.
func (a archive) addBuildCache(ctx context.Context, name, goroot, src, scratch string) error {
	cache := filepath.Join(scratch, "gocache")
	g := goCommand{root: goroot, dir: src, cache: cache}
	list, err := g.run(ctx, "list", "-deps", "-f", "{{if .Standard}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(append(strings.Fields(list), common...), func(p string) bool { return p == "unsafe" })
	slices.Sort(packages)
	if _, err := g.run(ctx, append([]string{"build"}, slices.Compact(packages)...)...); err != nil {
		return err
	}
	return filepath.WalkDir(cache, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(filepath.Base(filepath.Dir(file))) != 2 {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.HasSuffix(file, "-a") {
			content = timeless(content)
		}
		a.add(path.Join(name, filepath.Base(filepath.Dir(file)), d.Name()), content)
		return nil
	})
}

// timeless takes the time out of an entry of the build cache's index: it is the last field, with which nothing is decided.
func timeless(entry []byte) []byte {
	fields := bytes.Fields(entry)
	if len(fields) != 5 {
		return entry
	}
	return fmt.Appendf(nil, "%s %s %s %20s %20d\n", fields[0], fields[1], fields[2], fields[3], epoch.UnixNano())
}

// goCommand runs the go command of a toolchain as the bundle will.
type goCommand struct{ root, dir, cache string }

func (g goCommand) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(g.root, "bin", "go"), args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "PWD="+g.dir, "GOROOT="+g.root, "GOCACHE="+g.cache, "GOENV=off", "GOWORK=off", "GOFLAGS=",
		"GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "GODEBUG=goindex=0", "GOEXPERIMENT=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}
