package spec

import (
	"bytes"
	"errors"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makeOrigin makes an installation by hand: real attnb-cell, the module from this clone, stand-ins for the rest.
func makeOrigin(t *testing.T) Home {
	t.Helper()
	home := Home{Root: filepath.Join(t.TempDir(), "an origin")}
	build := exec.Command("go", "build", "-o", home.Cell(), Module+"/kernel/cmd/attnb-cell")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range binaries {
		if home.bin(name) == home.Cell() {
			continue
		}
		if err := writeText(home.bin(name), name); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(linkStandIn(home, "go"), linkStandIn(home, "goimports"), clone{root, goCommand}.writeSource(t.Context(), home.Src(), home.Mod()))
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func TestInstallAndUninstall(t *testing.T) {
	origin := makeOrigin(t)
	prefix := filepath.Join(t.TempDir(), "a prefix")
	place, err := PrefixPlace(prefix)
	if err != nil {
		t.Fatal(err)
	}

	// From here on there is no network and no module that was fetched before.
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOMODCACHE", t.TempDir())
	var said bytes.Buffer
	if err := Install(t.Context(), Options{Place: place, Origin: origin.Root, Out: &said}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(origin.Root); err != nil { // an installation needs nothing of what it was made from
		t.Fatal(err)
	}
	home, err := At(filepath.Join(prefix, "share", "attnb"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SelfTest(t.Context(), home); err != nil {
		t.Error(err)
	}
	for _, path := range []string{home.Attnb(), home.Gonb(), home.Gopls(), home.Goimports(), filepath.Join(place.Kernelspec(), "kernel.json")} {
		if !strings.Contains(said.String(), path) {
			t.Errorf("Install does not say that it wrote %s", path)
		}
	}
	checkKernelspec(t, place)
	checkSource(t, home)

	if err := Uninstall(place, &said); err != nil {
		t.Fatal(err)
	}
	var left []string
	err = filepath.WalkDir(prefix, func(path string, entry fs.DirEntry, err error) error {
		if !entry.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if err != nil || left != nil {
		t.Errorf("left after Uninstall: %v %v", left, err)
	}
	said.Reset()
	if err := Uninstall(place, &said); err != nil || !strings.Contains(said.String(), "nothing is installed") {
		t.Errorf("Uninstall again: %v, %s", err, &said)
	}
}

func checkKernelspec(t *testing.T, p Place) {
	t.Helper()
	spec, err := readKernelspec(p.Kernelspec())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{p.Home.Attnb(), "kernel", "{connection_file}"}; !slices.Equal(spec.Argv, want) {
		t.Errorf("argv %q, want %q", spec.Argv, want)
	}
	if spec.DisplayName != "Go (attnb)" || spec.Language != "go" || spec.InterruptMode != "message" {
		t.Errorf("kernelspec %+v", spec)
	}
	logo, err := os.Open(filepath.Join(p.Kernelspec(), "logo-64x64.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer logo.Close()
	if config, err := png.DecodeConfig(logo); err != nil || config.Width != 64 || config.Height != 64 {
		t.Errorf("logo: %+v, %v", config, err)
	}
}

// checkSource says whether src is what cells may import, and no more.
func checkSource(t *testing.T, h Home) {
	t.Helper()
	for _, dir := range []string{"kernel/attn", "kernel/wire", "reference", "viz"} {
		if _, err := os.Stat(filepath.Join(h.Src(), dir)); err != nil {
			t.Error(err)
		}
	}
	err := filepath.WalkDir(h.Src(), func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") || entry.Name() == "testdata" || strings.HasPrefix(path, filepath.Join(h.Src(), "cudaops")) {
			t.Errorf("src holds %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	mod, err := os.ReadFile(filepath.Join(h.Src(), "go.mod"))
	if err != nil || strings.Contains(string(mod), "gonb") || strings.Contains(string(mod), "gorgonia.org/cu") {
		t.Errorf("go.mod of src: %v\n%s", err, mod)
	}
}

func TestInstallRefusesWhatIsNoOrigin(t *testing.T) {
	dir := t.TempDir()
	place, err := PrefixPlace(filepath.Join(dir, "prefix"))
	if err != nil {
		t.Fatal(err)
	}
	err = Install(t.Context(), Options{Place: place, Origin: dir, Out: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), dir+" is neither an installation nor a clone") {
		t.Errorf("Install from an empty directory: %v", err)
	}
	if _, err := os.Stat(place.Home.Src()); err == nil {
		t.Error("it left a src behind")
	}
}

func TestUninstallKeepsWhatIsNotOurs(t *testing.T) {
	place, err := PrefixPlace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(place.Kernelspec(), "kernel.json")
	if err := writeText(other, `{"argv": ["/elsewhere/bin/attnb"]}`); err != nil {
		t.Fatal(err)
	}
	if err := Uninstall(place, &bytes.Buffer{}); err == nil {
		t.Error("another installation's kernelspec was removed")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(place.Kernelspec()); err != nil {
		t.Fatal(err)
	}
	if err := writeText(filepath.Join(place.Home.Root, "thesis.txt"), "words"); err != nil {
		t.Fatal(err)
	}
	var none *NoHomeError
	if err := Uninstall(place, &bytes.Buffer{}); !errors.As(err, &none) {
		t.Errorf("a directory of somebody else's: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("JUPYTER_DATA_DIR", "")
	t.Setenv("VIRTUAL_ENV", "/venv")
	for _, c := range []struct {
		choice        choice
		home, kernels string
	}{
		{choice{prefix: "/usr/local"}, "/usr/local/share/attnb", "/usr/local/share/jupyter/kernels"},
		{choice{sys: true}, "/venv/share/attnb", "/venv/share/jupyter/kernels"},
	} {
		got, err := c.choice.place()
		if err != nil || got.Home.Root != c.home || got.Kernels != c.kernels {
			t.Errorf("%+v: %+v, %v", c.choice, got, err)
		}
	}
	got, err := (&choice{user: true}).place()
	if err != nil || got.Home.Root != "/home/me/.local/share/attnb" {
		t.Errorf("--user: %+v, %v", got, err)
	}
	t.Setenv("JUPYTER_DATA_DIR", "/jupyter")
	if got, err := (&choice{user: true}).place(); err != nil || got.Kernels != "/jupyter/kernels" {
		t.Errorf("--user with JUPYTER_DATA_DIR: %+v, %v", got, err)
	}
	for _, none := range []choice{{}, {user: true, sys: true}, {user: true, prefix: "x"}} {
		if _, err := none.place(); !errors.Is(err, errOnePlace) {
			t.Errorf("%+v: %v", none, err)
		}
	}
}

func TestCommandsRefuseWrongArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"--user", "--sys-prefix"}, {"--nowhere"}, {"--user", "more"}} {
		var out, errs bytes.Buffer
		if code := InstallCommand(args, &out, &errs); code != 2 || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("install %v: %d, %s", args, code, &errs)
		}
		if code := UninstallCommand(args, &out, &errs); code != 2 {
			t.Errorf("uninstall %v: %d", args, code)
		}
	}
	var errs bytes.Buffer
	if code := InstallCommand([]string{"-h"}, &errs, &errs); code != 0 || !strings.Contains(errs.String(), "--prefix DIR") {
		t.Errorf("install -h: %d, %s", code, &errs)
	}
}

func TestDoctor(t *testing.T) {
	root := t.TempDir()
	home := Home{Root: root}
	t.Setenv("JUPYTER_PATH", "")
	t.Setenv("JUPYTER_DATA_DIR", filepath.Join(root, "jupyter"))
	t.Setenv("VIRTUAL_ENV", root)
	findings := Examine(t.Context(), home)
	var out bytes.Buffer
	if Print(&out, findings) {
		t.Errorf("an empty installation works:\n%s", &out)
	}
	for _, f := range findings {
		if f.State != Good && f.Cost == "" {
			t.Errorf("%s is %v and costs nothing", f.Name, f.State)
		}
	}
	state := func(name string) State {
		for _, f := range findings {
			if f.Name == name {
				return f.State
			}
		}
		t.Fatalf("nothing about %s in\n%s", name, &out)
		return Good
	}
	for name, want := range map[string]State{"go": Faulty, "gonb": Faulty, "gopls": Absent, "kernelspec": Absent, "a cell": Faulty} {
		if got := state(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	gone := filepath.Join(root, "jupyter", "kernels", "attnb", "kernel.json")
	if err := writeText(gone, `{"argv": ["/gone/attnb"]}`); err != nil {
		t.Fatal(err)
	}
	if findings := examineKernelspecs(home); len(findings) != 1 || findings[0].State != Faulty {
		t.Errorf("a kernelspec of an executable that is gone: %+v", findings)
	}
	if !Print(&out, []Finding{{Name: "x"}, {Name: "y", State: Absent}}) {
		t.Error("something absent counts as a fault")
	}
}

func TestFailedReplacementLeavesTheOldTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if err := writeText(filepath.Join(dir, "old"), "old"); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("as asked")
	err := replaceTree(dir, func(tmp string) error {
		return errors.Join(writeText(filepath.Join(tmp, "new"), "new"), failure)
	})
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the tree: %v %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); err != nil {
		t.Error(err)
	}
}

// TestMain gives the tests a cache directory of their own, but for the go command.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "attnb-spec-*")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			panic(err)
		}
		for name, value := range map[string]string{"GOCACHE": strings.TrimSpace(string(cache)), "XDG_CACHE_HOME": dir} {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}
