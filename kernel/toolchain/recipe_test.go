package toolchain

import (
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// said is what came of a command.
type said struct {
	stdout, stderr string
	code           int
}

func outcome(t *testing.T, cmd *exec.Cmd) said {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// goBuild builds as gonb does, and says whether a recipe was followed.
func (c *cell) goBuild() (said, bool) {
	c.t.Helper()
	_ = os.Remove(c.program() + programSuffix)
	got := outcome(c.t, c.command("go", "build", "-o", c.program()))
	id, err := exec.Command("go", "tool", "buildid", c.program()+programSuffix).Output()
	return got, err == nil && strings.TrimSpace(string(id)) == ourBuildID
}

// realBuild builds through the go command alone.
func (c *cell) realBuild() said {
	c.t.Helper()
	_ = os.Remove(c.program() + programSuffix)
	real, err := exec.LookPath("go")
	if err != nil {
		c.t.Fatal(err)
	}
	return outcome(c.t, c.command(real, buildArgs([]string{"build", "-o", c.program()}, onceFlag(c.dir))...))
}

const printing = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"RUN\") }\n"

// Cells, right and wrong. RUN stands for something that differs from build to build.
var cells = []struct {
	name, code string
	recipe     bool // is it built by a recipe, once there is one?
}{
	{"print", printing, true},
	{"no imports", "package main\n\nfunc main() { println(\"RUN\") }\n", true},
	{"attn", "package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + attnPath + "\"\n)\n\nfunc main() {\n\tfmt.Println(attn.Once(\"q;RUN\", func() int { return 1 }), attn.Once(\"q r\", func() int { return 2 }), attn.Hashes())\n}\n", true},
	{"panic", "package main\n\nimport \"errors\"\n\nfunc f() { panic(errors.New(\"RUN\")) }\n\nfunc main() {\n\n\tf()\n}\n", true},
	{"what it knows of itself", "package main\n\nimport (\n\t\"fmt\"\n\t\"runtime\"\n\t\"runtime/debug\"\n)\n\nfunc main() {\n\tfmt.Println(debug.ReadBuildInfo())\n\tfmt.Println(runtime.Caller(0))\n\tfmt.Println(runtime.Version(), \"RUN\")\n}\n", true},
	{"its settings", "package main\n\nimport (\n\t\"fmt\"\n\t\"runtime/debug\"\n\n\t\"" + attnPath + "\"\n)\n\nvar q = attn.Once(\"q 1\", func() int { return len(\"RUN\") })\n\nfunc main() {\n\tinfo, _ := debug.ReadBuildInfo()\n\tfmt.Println(info, q)\n}\n", true},
	{"type parameters", "package main\n\nimport \"slices\"\n\nfunc last[T any](x []T) T { return x[len(x)-1] }\n\nfunc main() {\n\tx := []string{\"b\", \"RUN\"}\n\tslices.Sort(x)\n\tprintln(last(x))\n}\n", true},
	{"exit", "package main\n\nimport \"os\"\n\nfunc main() {\n\tos.Stdout.WriteString(\"RUN\")\n\tos.Exit(7)\n}\n", true},
	{"unused variable", "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tx := \"RUN\"\n\tfmt.Println()\n}\n", false},
	{"unused import", "package main\n\nimport \"fmt\"\n\nfunc main() { println(\"RUN\") }\n", false},
	{"undefined", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(RUN, fmt.Prnt) }\n", false},
	{"many errors", "package main\n\nfunc main() {\n" + strings.Repeat("\tundefined(RUN)\n", 14) + "}\n", false},
	{"no main", "package main\n\nvar RUN = 1\n", false},
	{"two mains", "package main\n\nfunc main() { println(\"RUN\") }\n\nfunc main() {}\n", false},
	{"no body", "package main\n\nfunc f()\n\nfunc main() { f(); println(\"RUN\") }\n", false},
	{"syntax", "package main\n\nfunc main() { println(\"RUN\" }\n", false},
	{"broken import", "package main\n\nimport \"fmt\n\nfunc main() { println(\"RUN\") }\n", false},
	{"no package", "package main\n\nimport \"RUN/none\"\n\nfunc main() { none.F() }\n", false},
	{"internal", "package main\n\nimport \"internal/abi\"\n\nfunc main() { println(\"RUN\", abi.FuncPCABI0(main)) }\n", false},
	{"other package", "package other\n\nfunc main() { println(\"RUN\") }\n", false},
	{"excluded", "//go:build ignore\n\npackage main\n\nfunc main() { println(\"RUN\") }\n", false},
	{"embedded", "package main\n\nimport _ \"embed\"\n\n//go:embed go.mod\nvar RUN string\n\nfunc main() { println(RUN) }\n", false},
	{"nothing to embed", "package main\n\nimport _ \"embed\"\n\n//go:embed RUN\nvar text string\n\nfunc main() { println(text) }\n", false},
	{"setting", "//go:debug panicnil=1\npackage main\n\nfunc main() { println(\"RUN\") }\n", false},
	{"wrong setting", "//go:debug RUN=1\npackage main\n\nfunc main() { println(\"RUN\") }\n", false},
	{"position", "package main\n\n//line other.go:100\nfunc main() { var RUN int }\n", false},
	{"zero byte", "package main\n\nfunc main() { println(\"RUN\x00\") }\n", false},
	{"not UTF-8", "package main\n\nfunc main() { println(\"RUN\xff\") }\n", false},
}

func TestRecipesBuildTheSame(t *testing.T) {
	for _, k := range cells {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t)
			c.write("main.go", strings.ReplaceAll(k.code, "RUN", "first"))
			if got, followed := c.goBuild(); followed && !k.recipe {
				t.Errorf("built by a recipe at first: %+v", got)
			}
			c.write("main.go", strings.ReplaceAll(k.code, "RUN", "second"))
			got, followed := c.goBuild()
			if followed != k.recipe {
				t.Errorf("built by a recipe: %v", followed)
			}
			var ran said
			if got.code == 0 && k.name != "other package" {
				ran = outcome(t, c.command(c.program()+programSuffix))
			}
			if want := c.realBuild(); got != want {
				t.Fatalf("the build says\n%+v\nthe real one\n%+v", got, want)
			}
			if got.code == 0 && k.name != "other package" {
				if want := outcome(t, c.command(c.program()+programSuffix)); clean(ran) != clean(want) {
					t.Errorf("the program says\n%+v\nthe real one\n%+v", ran, want)
				}
			}
		})
	}
}

// clean takes away what differs between two runs of one program: addresses.
func clean(s said) said {
	lines := strings.Split(s.stderr, "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, " +0x")
		if before, _, found := strings.Cut(lines[i], "(0x"); found {
			lines[i] = before
		}
	}
	s.stderr = strings.Join(lines, "\n")
	return s
}

// printingBuild builds a printing cell and says whether a recipe was followed.
func (c *cell) printingBuild(text string) bool {
	c.t.Helper()
	c.write("main.go", strings.ReplaceAll(printing, "RUN", text))
	got, followed := c.goBuild()
	if got.code != 0 || outcome(c.t, c.command(c.program()+programSuffix)).stdout != text+"\n" {
		c.t.Fatalf("%s: %+v", text, got)
	}
	return followed
}

func TestWhenThereIsDoubt(t *testing.T) {
	c := newCell(t)
	c.printingBuild("warm")
	if !c.printingBuild("plain") {
		t.Fatal("no recipe was made")
	}
	args := []string{"build", "-o", c.program()}
	environ := c.command("go").Env
	plain := func(args []string, settings ...string) bool {
		return plainBuild("go", c.dir, args, append(slices.Clone(environ), settings...)) != nil
	}
	if !plain(args) || !plain(args, "GOFLAGS=-mod=mod -buildvcs=false", "GOPROXY=x", "GONB_DIR=x", "GOOGLE_X=x", "GODEBUG=") {
		t.Error("nothing is in doubt")
	}
	for _, setting := range []string{
		"GOFLAGS=-trimpath", "GOFLAGS=-tags=x", "GOFLAGS=--toolexec=x", "GOAMD64=v2", "GODEBUG=panicnil=1", "GOEXPERIMENT=x",
		"CGO_CFLAGS=-O1", "GOFIPS140=latest", "GO_EXTLINK_ENABLED=0", "GOOS=js", "GOARCH=wasm", "GOCACHEPROG=x", "GOCOVERDIR=x",
	} {
		if plain(args, setting) {
			t.Errorf("with %s: taken for plain", setting)
		}
	}
	if plain(append(args, "-race")) || plain([]string{"test", "-c", "-o", c.program()}) {
		t.Error("with other arguments: taken for plain")
	}
	for _, name := range []string{"other.go", "a.s", "default.pgo"} {
		text := map[string]string{".go": "package main\n"}[filepath.Ext(name)]
		c.write(name, text)
		if plain(args) {
			t.Errorf("beside %s: taken for plain", name)
		}
		if err := os.Remove(filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if !c.printingBuild("again") {
		t.Error("nothing is in doubt, yet no recipe was followed")
	}
	info, err := buildinfo.ReadFile(c.program() + programSuffix)
	if err != nil || info.Path != filepath.Base(c.dir) {
		t.Errorf("build information %v, %v", info, err)
	}
}

// A recipe serves another kernel, whose cells have another directory and so another module.
func TestRecipesServeOtherKernels(t *testing.T) {
	c := newCell(t)
	c.printingBuild("here")
	other := newCell(t)
	if !other.printingBuild("there") {
		t.Error("no recipe was followed")
	}
}

func TestStaleRecipes(t *testing.T) {
	c := newCell(t)
	attn := filepath.Join(testHome.Src(), "kernel", "attn")
	extra := filepath.Join(attn, "extra.go")
	change := func(value string) {
		t.Helper()
		text := "package attn\n\nfunc Value() string { return \"" + value + "\" }\n"
		if err := os.WriteFile(extra, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(extra) })
	build := func(want string) bool {
		t.Helper()
		c.write("main.go", "package main\n\nimport \""+attnPath+"\"\n\nfunc main() { print(attn.Value()) } // "+time.Now().String()+"\n")
		got, followed := c.goBuild()
		if text := outcome(t, c.command(c.program()+programSuffix)).stderr; got.code != 0 || text != want {
			t.Fatalf("%q, want %q, %+v", text, want, got)
		}
		return followed
	}
	change("one")
	time.Sleep(50 * time.Millisecond) // what was just written makes no recipe
	build("one")
	if !build("one") {
		t.Fatal("no recipe was followed")
	}
	change("two") // of the same size
	if build("two") {
		t.Error("a stale recipe was followed")
	}
	time.Sleep(50 * time.Millisecond)
	build("two")
	if !build("two") {
		t.Error("no new recipe was made")
	}
	if err := os.WriteFile(filepath.Join(attn, "more.go"), []byte("package attn\n\nfunc init() { print(\"more \") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Join(attn, "more.go")) })
	if build("more two") {
		t.Error("a recipe was followed although a file came")
	}

	recipes, err := filepath.Glob(filepath.Join(testHome.Root, "cache", "attnb", "recipes", "*"))
	if err != nil || len(recipes) == 0 {
		t.Fatal("no recipes", err)
	}
	c.printingBuild("recipe")
	for _, path := range recipes { // broken, and too old
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text[:len(text)/2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c.printingBuild("broken") {
		t.Error("half a recipe was followed")
	}
	if !c.printingBuild("whole again") {
		t.Error("a broken recipe was not replaced")
	}
	for _, path := range recipes {
		old := time.Now().Add(-renewal - time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if c.printingBuild("old") {
		t.Error("a recipe was followed past its time")
	}
}

func TestRecipeText(t *testing.T) {
	r := &recipe{
		key: "key\n\nmore", packages: "", linked: "linked\n",
		compile: command{[]string{"A=b c"}, []string{"compile", ""}}, link: command{nil, []string{"link"}},
		inputs: []input{{"/a b", 1, 1 << 60, 3}, {"/c", 0, 0, -1}},
	}
	text := r.encode()
	if got := decode(text); got == nil || got.encode() != text || got.compile.args[1] != "" || got.inputs[0] != r.inputs[0] {
		t.Errorf("decoded %+v", got)
	}
	for n := range len(text) {
		if decode(text[:n]) != nil {
			t.Fatalf("the first %d of %d bytes are taken for a recipe", n, len(text))
		}
	}
	if decode(text+"x") != nil {
		t.Error("a recipe with something behind it is taken")
	}
}

func TestSplitCommand(t *testing.T) {
	c, ok := splitCommand(`GOROOT='/a b' X='' /t/link -o $WORK/b001/exe/a.out -X "main.v=\"q\" x" -s "" last`)
	want := command{[]string{"GOROOT=/a b", "X="}, []string{"/t/link", "-o", "$WORK/b001/exe/a.out", "-X", `main.v="q" x`, "-s", "", "last"}}
	if !ok || !slices.Equal(c.env, want.env) || !slices.Equal(c.args, want.args) {
		t.Errorf("%q %v", c, ok)
	}
	for _, line := range []string{"", `a "b`, "A='b"} {
		if c, ok := splitCommand(line); ok {
			t.Errorf("%s: %q", line, c)
		}
	}
}
