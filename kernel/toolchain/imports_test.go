package toolchain

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/spec"
)

// Cells without their package clause. handled: the real goimports is not asked.
var importCells = []struct {
	name, code string
	handled    bool
}{
	{"nothing", "func main() {}", true},
	{"complete", "import (\n\t\"fmt\"\n\t\"math/rand/v2\"\n\tm \"math\"\n)\n\nfunc main() { fmt.Println(rand.Int(), m.Pi) }", true},
	{"unused", "import (\n\t\"fmt\"; \"os\"\n\tm \"math\" // why\n\t\"" + attnPath + "\"\n)\n\nimport \"net/http\"\n\nfunc main() { fmt.Println() }", true},
	{"all unused", "import \"fmt\"\n\nimport (\n\t\"os\"\n)\n\nfunc main() {}", true},
	{"for its effects", "import _ \"image/png\"\n\nfunc main() {}", true},
	{"missing", "func main() { flag.Parse(); fmt.Println(strings.ToUpper(\"x\"), math.Pi, sort.IsSorted(nil)) }", true},
	{"missing and unused", "import \"os\"\n\nfunc main() { flag.Parse() }", true},
	{"hidden by a variable", "import \"fmt\"\n\nfunc main() { var fmt struct{ Println func() }; fmt.Println() }", true},
	{"hidden by a parameter", "import (\n\t\"os\"\n\t\"sort\"\n)\n\nfunc f(os struct{ Args int }) { _ = os.Args }\n\nfunc main() { sort.Ints(nil) }", true},
	{"hidden by a declaration", "var flag struct{ Value int }\n\nfunc main() { _ = flag.Value }", true},
	{"not exported", "import \"fmt\"\n\nfunc main() { fmt.println() }", true},
	{"used by a type alone", "import \"time\"\n\ntype T struct{ time.Time; at map[string]*time.Duration }\n\nfunc main() {}", true},
	{"in a string", "import \"fmt\"\n\nfunc main() { println(\"fmt.Println\", `os.Args`) /* os.Exit */ }", true},
	{"in a label", "func main() {\nos:\n\tfor {\n\t\tbreak os\n\t}\n}", true},
	{"type parameters", "import \"cmp\"\n\nfunc max[T cmp.Ordered](x []T) T { return x[0] }\n\nfunc main() { slices.Sort([]int{max([]int{1})}) }", true},
	{"a name that it lacks", "func main() { fmt.Prntln() }", false},
	{"less known", "func main() { _ = rand.Int() }", false},
	{"unknown", "func main() { nowhere.Found() }", false},
	{"of a module", "import \"gonum.org/v1/gonum/mat\"\n\nfunc main() { mat.NewDense(1, 1, nil) }", false},
	{"twice", "import \"fmt\"\nimport \"fmt\"\n\nfunc main() { fmt.Println() }", false},
	{"with a dot", "import . \"fmt\"\n\nfunc main() { Println() }", false},
	{"cgo", "import \"C\"\n\nfunc main() { C.f() }", false},
	{"embedded", "//go:embed x\nvar x string\n\nfunc main() {}", false},
	{"syntax", "func main() { fmt.Println( }", false},
}

// imported by a file: name and path, sorted.
func importsOf(t *testing.T, text []byte) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all []string
	for _, i := range file.Imports {
		entry := i.Path.Value
		if i.Name != nil {
			entry = i.Name.Name + " " + entry
		}
		all = append(all, entry)
	}
	slices.Sort(all)
	return all
}

// realGoimports is where the installer puts it, else on PATH.
func realGoimports(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "goimports"))
	if err != nil {
		t.Fatal(err)
	}
	if exists(path) {
		return path
	}
	if path, err = exec.LookPath("goimports"); err != nil {
		t.Skip("no goimports: ./install.sh brings it")
	}
	return path
}

func TestImportsAreTheRealOnes(t *testing.T) {
	real := realGoimports(t)
	command, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	root := goroot(command)
	for _, k := range importCells {
		t.Run(k.name, func(t *testing.T) {
			text := []byte("package main\n\n" + k.code + "\n")
			got, ok := usedImports(text, root)
			if ok != k.handled {
				t.Fatalf("handled: %v", ok)
			}
			if !ok {
				return
			}
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(real, "-w", file).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			formatted, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := importsOf(t, got), importsOf(t, formatted); !slices.Equal(got, want) {
				t.Errorf("imports %q, want %q", got, want)
			}
		})
	}
}

// Every name in the table is one by which the real goimports finds the package.
func TestExportsAreKnownToGoimports(t *testing.T) {
	real := realGoimports(t)
	var code strings.Builder
	code.WriteString("package main\n")
	for name, names := range exports {
		for _, export := range strings.Fields(names) {
			code.WriteString("var _ = " + name + "." + export + "\n")
		}
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(real, "-w", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := importsOf(t, text); len(got) != len(exports) {
		t.Errorf("goimports found %q", got)
	}
}

// What the stand-in does to a cell's file, and when it calls the real one.
func TestGoimportsStandIn(t *testing.T) {
	c := newCell(t)
	const script = "#!/bin/sh\necho real \"$@\"\n"
	if err := os.WriteFile(testHome.Goimports(), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	goimports := func(args ...string) string {
		t.Helper()
		got := outcome(t, c.command(filepath.Join(testHome.PathDir(), "goimports"), args...))
		if got.code != 0 || got.stderr != "" {
			t.Fatalf("%+v", got)
		}
		return got.stdout
	}
	file := filepath.Join(c.dir, cellFile)
	c.write(cellFile, "package main\n\nimport (\n\t\"os\"\n\t\""+spec.Module+"/reference\"\n)\n\nfunc main() { fmt.Println(reference.X) }\n")
	if said := goimports("-w", file); said != "" {
		t.Errorf("it says %q", said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := importsOf(t, text), []string{`"fmt"`, `"` + spec.Module + `/reference"`}; !slices.Equal(got, want) {
		t.Errorf("imports %q", got)
	}
	for _, args := range [][]string{{file}, {"-l", file}, {"-w", filepath.Join(t.TempDir(), "x.go")}, {"-w", "main.go"}} {
		if said := goimports(args...); said != "real "+strings.Join(args, " ")+"\n" {
			t.Errorf("%q: %q", args, said)
		}
	}
	c.write("other.go", "package main\n")
	if said := goimports("-w", file); said != "real -w "+file+"\n" {
		t.Errorf("beside another file: %q", said)
	}
}
