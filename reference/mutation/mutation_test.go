package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "every mutant, which takes some ten minutes")

// shortSample is how many mutants of a package the usual run tries.
const shortSample = 3

// under are the packages whose tests are tested.
var under = []string{"..", "../parity"}

// A mutant that lives, though its package's tests ran, is reported, but for those that change nothing.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles packages")
	}
	for _, dir := range under {
		t.Run(filepath.Base(filepath.Join("reference", dir)), func(t *testing.T) {
			all := mutantsOf(t, dir)
			if !*full {
				rand.New(rand.NewPCG(1, uint64(len(all)))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				all = all[:shortSample]
			}
			counts := tried(t, dir, all)
			t.Logf("%d mutants: %d caught, %d do not compile, %d change nothing", len(all), counts[dies], counts[invalidSource], counts[lives])
		})
	}
}

// planted is a mutant of a file.
type planted struct {
	Mutant
	file string
	nth  int // of those that look the same within a function
}

func (p planted) String() string {
	return fmt.Sprintf("%s:%d: %s in %s (%s)", filepath.Base(p.file), p.Line, p.What, p.Func, p.key())
}

// key names a mutant by what a change elsewhere in the file leaves as it is.
func (p planted) key() string {
	return fmt.Sprintf("%s %s %s %d", filepath.Base(p.file), p.Func, p.What, p.nth)
}

func mutantsOf(t *testing.T, dir string) []planted {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []planted
	seen := map[string]int{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := Mutants(f, source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			look := f + m.Func + m.What
			all = append(all, planted{m, f, seen[look]})
			seen[look]++
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d mutants of %s", len(all), dir)
	}
	return all
}

type outcome uint8

const (
	dies outcome = iota
	lives
	invalidSource
)

// tried runs the tests of dir against each mutant, two at a time, and counts what became of them.
func tried(t *testing.T, dir string, all []planted) (counts [3]int) {
	scratch := t.TempDir()
	if o := run(t.Context(), dir, build(t, dir, scratch)); o != lives {
		t.Fatalf("the tests of %s fail without a mutant", dir)
	}
	next := make(chan int)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range next {
				m := all[i]
				o, err := try(scratch, dir, i, m)
				why := harmless[m.key()]
				switch {
				case err != nil:
					t.Errorf("%s: %v", m, err)
				case o == lives && why == "":
					t.Errorf("%s lives: no test notices it", m)
				case o == dies && why != "":
					t.Errorf("%s is caught, though it is said to change nothing: %s", m, why)
				}
				mu.Lock()
				counts[o]++
				mu.Unlock()
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	return counts
}

func try(scratch, dir string, i int, m planted) (outcome, error) {
	source := filepath.Join(scratch, fmt.Sprintf("%d.go", i))
	overlay := filepath.Join(scratch, fmt.Sprintf("%d.json", i))
	binary := filepath.Join(scratch, fmt.Sprintf("%d.test", i))
	where, err := filepath.Abs(m.file)
	if err != nil {
		return dies, err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {where: source}})
	if err != nil {
		return dies, err
	}
	if err := os.WriteFile(source, m.Source, 0o600); err != nil {
		return dies, err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return dies, err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		if bytes.Contains(said, []byte(filepath.Base(m.file))) || bytes.Contains(said, []byte(filepath.Base(source))) {
			return invalidSource, nil
		}
		return dies, fmt.Errorf("%w: %s", err, said)
	}
	defer os.Remove(binary)
	return run(context.Background(), dir, binary), nil
}

// run runs a package's tests.
func run(ctx context.Context, dir, binary string) outcome {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a loop that does not end is noticed, too
	defer cancel()
	tests := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout=10s")
	tests.Dir = dir
	if tests.Run() == nil {
		return lives
	}
	return dies
}

// build compiles a package's tests as they are.
func build(t *testing.T, dir, scratch string) (binary string) {
	t.Helper()
	binary = filepath.Join(scratch, "unchanged.test")
	compile := exec.Command("go", "test", "-c", "-o", binary, ".")
	compile.Dir = dir
	if said, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return binary
}

// harmless are mutants that change nothing that can be told, and why.
var harmless = map[string]string{
	"scaling.go attention < for <= 0":             "the logarithm of a factor of 1 is 0",
	"scaling.go Frequencies the other infinity 0": "an infinite factor makes an infinite base, which is refused",
	"split.go Split >= for > 1":                   "as many heads as elements leave none for k and v",

	"class.go compare >= for > 0": "a cell that is off by 0 gets ratio 0 at the end",
	"class.go compare >= for > 1": "off by more than 0 over a bound of 0 is the infinity that the ratio has already",
	"class.go compare >= for > 2": "off by 0 means got is want, and so want rounded",
	"parity.go list 2 for 1 1":    "before or behind: only the sign counts",
	"class.go alike && for || 0":  "NaN equals nothing in the cases behind",
}
