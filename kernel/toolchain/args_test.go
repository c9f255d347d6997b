package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/spec"
)

func TestIsCell(t *testing.T) {
	for dir, want := range map[string]bool{
		"/tmp/gonb_0123abcd":     true,
		"/tmp/gonb_0000000000":   true,
		"/tmp/gonb_0123abc":      false,
		"/tmp/gonb_0123ABCD":     false,
		"/tmp/gonb_0123abcd/sub": false,
		"/home/me/gonb":          false,
	} {
		if isCell(dir) != want {
			t.Errorf("isCell(%q) = %v", dir, !want)
		}
	}
}

func TestWhatIsRecognised(t *testing.T) {
	const dir = "/tmp/gonb_0123abcd"
	const program = dir + "/gonb_0123abcd"
	for _, c := range []struct {
		args             string
		init, get, build bool
	}{
		{args: "mod init gonb_0123abcd", init: true},
		{args: "mod init other"},
		{args: "mod tidy"},
		{args: "get", get: true},
		{args: "get -t", get: true},
		{args: "get -u"},
		{args: "get gonum.org/v1/gonum"},
		{args: "build -o " + program, build: true},
		{args: "build -o " + program + " -race", build: true},
		{args: "test -c -o " + program, build: true},
		{args: "build -o /tmp/elsewhere"},
		{args: "build"},
		{args: "test -c"},
		{args: "run ."},
		{args: ""},
	} {
		args := strings.Fields(c.args)
		if got := [3]bool{isModInit(args, dir), isPlainGet(args), isCellBuild(args, dir)}; got != [3]bool{c.init, c.get, c.build} {
			t.Errorf("go %s: recognised as mod init, get, build: %v", c.args, got)
		}
	}
}

func TestBuildArgs(t *testing.T) {
	const base = "build -o X.cell -buildvcs=false "
	for _, c := range []struct{ args, once, want string }{
		{"build -o X", "", base + "-ldflags=-s -w"},
		{"build -o X", "-X a.b=c", base + "-ldflags=-s -w -X a.b=c"},
		{"build -o X -race", "", base + "-ldflags=-s -w|-race"},
		{"build -o X -ldflags=-X=main.v=1 -race", "", base + "-ldflags=-s -w -X=main.v=1|-race"},
		{"build -o X -ldflags -compressdwarf", "", base + "-ldflags=-s -w -compressdwarf"},
		{"build -o X -ldflags=all=-v -tags t", "", base + "-ldflags=-s -w|-ldflags=all=-v|-tags|t"},
		{"build -o X -ldflags", "", base + "-ldflags=-s -w|-ldflags"},
		{"test -c -o X", "", "test -c -o X.cell -buildvcs=false -ldflags=-s -w"},
	} {
		got := buildArgs(strings.Fields(c.args), c.once)
		head, tail, _ := strings.Cut(c.want, " -ldflags=")
		want := append(strings.Fields(head), strings.Split("-ldflags="+tail, "|")...)
		if !slices.Equal(got, want) {
			t.Errorf("%s %s:\n got %q\nwant %q", c.args, c.once, got, want)
		}
	}
}

func TestRealGo(t *testing.T) {
	dir := t.TempDir()
	file := func(mode os.FileMode, path ...string) string {
		name := filepath.Join(append([]string{dir}, path...)...)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	home := spec.Home{Root: filepath.Join(dir, "home")}
	cell := file(0o755, "other", "bin", "attnb-cell")
	standIn := filepath.Join(dir, "other", "path")
	if err := os.MkdirAll(standIn, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(cell, filepath.Join(standIn, "go")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Dir(file(0o644, "plain", "go"))
	real := file(0o755, "real", "go")
	path := strings.Join([]string{"", "relative", standIn, plain, filepath.Dir(real)}, ":")

	if got, err := realGo(home, path); err != nil || got != real {
		t.Errorf("realGo = %q, %v: want %q", got, err, real)
	}
	if got, err := realGo(home, strings.Join([]string{standIn, plain}, ":")); err == nil {
		t.Errorf("realGo with no go: %q, want an error", got)
	}
	own := file(0o755, "home", "go", "bin", "go")
	if got, err := realGo(home, path); err != nil || got != own {
		t.Errorf("realGo = %q, %v: want the installation's own", got, err)
	}
}

func TestGoSetting(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("GOPROXY", "")
	t.Setenv("GOENV", filepath.Join(dir, "missing"))
	if got := goSetting("GOPROXY", dir); got != "" {
		t.Errorf("without any: %q", got)
	}
	write("go.env", "# defaults\nGOPROXY=default\nGOSUMDB=x\n")
	if got := goSetting("GOPROXY", dir); got != "default" {
		t.Errorf("the toolchain's: %q", got)
	}
	t.Setenv("GOENV", write("env", "GOPROXY=written\n"))
	if got := goSetting("GOPROXY", dir); got != "written" {
		t.Errorf("of go env -w: %q", got)
	}
	t.Setenv("GOPROXY", "direct")
	if got := goSetting("GOPROXY", dir); got != "direct" {
		t.Errorf("of the environment: %q", got)
	}

	env := cellEnviron(spec.Home{Root: "/a b,c"}, "")
	var proxies []string
	for _, entry := range env {
		if strings.HasPrefix(entry, "GOPROXY=") {
			proxies = append(proxies, entry)
		}
	}
	if want := []string{"GOPROXY=file:///a%20b%2Cc/mod,direct"}; !slices.Equal(proxies, want) {
		t.Errorf("cellEnviron: %q, want %q", proxies, want)
	}
}

func TestProgramEnviron(t *testing.T) {
	given := []string{"A=1", "TMPDIR=/gonb", EnvUserTMPDIR + "=x", "B=2"}
	for _, c := range []struct {
		user *string
		want []string
	}{
		{nil, given},
		{new(string), []string{"A=1", "B=2"}},
		{ptr("/mine"), []string{"A=1", "B=2", "TMPDIR=/mine"}},
	} {
		if err := os.Unsetenv(EnvUserTMPDIR); err != nil {
			t.Fatal(err)
		}
		if c.user != nil {
			t.Setenv(EnvUserTMPDIR, *c.user)
		}
		if got := programEnviron(slices.Clone(given)); !slices.Equal(got, c.want) {
			t.Errorf("programEnviron = %q, want %q", got, c.want)
		}
	}
}

func ptr(s string) *string { return &s }
