package toolchain

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/spec"
)

// cellFile is the one file of a plain cell.
const cellFile = "main.go"

// build is a cell that can be built by a recipe: one file, nothing that the go command would treat in a special way.
type build struct {
	dir     string // the cell's directory
	program string // what is to be built
	real    string // the go command
	env     []string
	imports []string // sorted
	once    string   // what attn.onceHashes becomes, or ""
}

// plainBuild returns what `go build args...` in dir is to build, or nil when there is any doubt whether a recipe will do.
func plainBuild(real, dir string, args, env []string) *build {
	if len(args) != 3 || args[0] != "build" || !onlyCellFile(dir) || !plainEnviron(env, goroot(real)) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, cellFile))
	if err != nil || hasDirective(string(text)) {
		return nil
	}
	cell := newSources()
	if cell.add(cellFile, text) != nil || cell.files[0].file.Name.Name != "main" {
		return nil
	}
	b := &build{dir: dir, program: args[2] + programSuffix, real: real, env: env, once: onceValue(cell.hashes())}
	for _, path := range cell.files[0].paths {
		if path == "C" {
			return nil
		}
		b.imports = append(b.imports, path)
	}
	slices.Sort(b.imports)
	b.imports = slices.Compact(b.imports)
	return b
}

// hasDirective says whether a source text has something that is for the go command: constraints, embedded files, settings.
// Such words in a string are taken for directives too.
func hasDirective(text string) bool {
	return strings.Contains(text, "//go:") || strings.Contains(text, "+build") || strings.Contains(text, "//export")
}

// builtKinds are the files that the go command builds a package of, or with.
var builtKinds = strings.Fields(".go .c .cc .cpp .cxx .m .h .hh .hpp .hxx .f .F .for .f90 .s .S .sx .swig .swigcxx .syso .pgo")

// onlyCellFile says whether main.go is all that there is to build in dir, and no workspace applies to it.
func onlyCellFile(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	found := false
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == cellFile && entry.Type().IsRegular():
			found = true
		case name == "vendor", slices.Contains(builtKinds, filepath.Ext(name)):
			return false
		}
	}
	if os.Getenv("GOWORK") != "off" {
		for ; ; dir = filepath.Dir(dir) {
			if exists(filepath.Join(dir, "go.work")) {
				return false
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return found
}

// settingsNames are the settings of the go command with which a recipe will do, since none changes what the compiler and
// the linker do by themselves. A recipe is for one value of each.
var settingsNames = []string{
	"GOAUTH", "GOBIN", "GOCACHE", "GOENV", "GOFLAGS", "GOINSECURE", "GOMAXPROCS", "GOMODCACHE", "GONOPROXY", "GONOSUMDB",
	"GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTELEMETRY", "GOTELEMETRYDIR", "GOTMPDIR", "GOTOOLCHAIN",
	"GOTRACEBACK", "GOVCS", "GOWORK", "CGO_ENABLED",
}

// plainFlags are the flags in GOFLAGS with which a recipe will do.
var plainFlags = []string{"-buildvcs", "-mod", "-modcacherw", "-p"}

// plainEnviron says whether the environment and the files of `go env -w` set nothing but settingsNames.
func plainEnviron(env []string, goroot string) bool {
	for _, entry := range append(slices.Clone(env), strings.Split(settingsFiles(goroot), "\n")...) {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !isSetting(name):
		case name == "GOFLAGS":
			for _, flag := range strings.Fields(value) {
				flag, _, _ = strings.Cut(flag, "=")
				if !slices.Contains(plainFlags, strings.Replace(flag, "--", "-", 1)) {
					return false
				}
			}
		case value != "" && !slices.Contains(settingsNames, name):
			return false
		}
	}
	return true
}

// isSetting says whether a name in the environment may be for the go command or its tools.
func isSetting(name string) bool {
	return strings.HasPrefix(name, "CGO_") ||
		strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "GONB_") && !strings.HasPrefix(name, "GOOGLE_")
}

// settingsFiles is the text of the files that hold settings: of `go env -w`, and of the toolchain.
func settingsFiles(goroot string) string {
	var text strings.Builder
	for _, file := range []string{envFile(), filepath.Join(goroot, "go.env")} {
		content, err := os.ReadFile(file)
		if err == nil {
			text.Write(content)
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// key is all that a recipe depends on and that it does not list as an input: two builds of one key run the same commands.
func (b *build) key() (string, bool) {
	mod, err := os.ReadFile(filepath.Join(b.dir, "go.mod"))
	if err != nil {
		return "", false
	}
	first, rest, _ := strings.Cut(string(mod), "\n")
	if first != "module "+filepath.Base(b.dir) || strings.Contains(rest, "=> .") { // that depends on where we are
		return "", false
	}
	sum, err := os.ReadFile(filepath.Join(b.dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return "", false
	}
	var settings []string
	for _, entry := range b.env {
		if name, _, _ := strings.Cut(entry, "="); isSetting(name) {
			settings = append(settings, entry)
		}
	}
	slices.Sort(settings)
	root := goroot(b.real)
	parts := []string{recipeFormat, b.real, root, strings.Join(b.imports, " "), rest, string(sum), settingsFiles(root)}
	for _, name := range []string{"CC", "CXX", "AR", "PKG_CONFIG"} {
		parts = append(parts, os.Getenv(name))
	}
	for _, name := range []string{"gcc", "clang"} { // the go command uses cgo where it finds a C compiler
		path, err := exec.LookPath(name)
		if err == nil {
			parts = append(parts, path)
		}
	}
	return strings.Join(append(parts, settings...), "\n\n"), true
}

// goFlags are the flags that the linker gets through the go command, as one text.
func (b *build) goFlags() string {
	if b.once == "" {
		return ourFlags
	}
	return ourFlags + " -X " + quoteFlag(b.once)
}

// linkFlags are the same flags as the linker sees them.
func (b *build) linkFlags() []string {
	flags := strings.Fields(ourFlags)
	if b.once != "" {
		flags = append(flags, "-X", b.once)
	}
	return flags
}

// settings is what the go command writes about the flags into the program, for debug.ReadBuildInfo.
func (b *build) settings() string {
	text := strconv.Quote("build\t-ldflags=" + strconv.Quote(b.goFlags()) + "\n")
	return text[1 : len(text)-1]
}

// make builds a plain cell by its recipe, or through the go command and keeps the recipe for the next cell with the
// same imports. It says whether the program was built.
func (b *build) make() bool {
	key, ok := b.key()
	if !ok {
		return false
	}
	store := store{spec.Recipes()}
	if r := store.load(key); r != nil {
		if fresh, built := b.follow(r); fresh {
			return built
		}
		store.drop(key)
	}
	began := time.Now()
	made, done := b.record()
	if made != nil && made.takeInputs(began) {
		made.key = key
		store.save(made)
	}
	return done
}
