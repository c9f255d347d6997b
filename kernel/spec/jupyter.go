package spec

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ofJupyter are the Python packages that a Jupyter is looked at for, and what the absence of each costs.
var ofJupyter = []struct{ name, cost string }{
	{"jupyterlab", "no JupyterLab to open notebooks in: pip install jupyterlab, or use another front end"},
	{"ipywidgets", "no controls in notebooks (attn.Explore, attn.Slider, attn.Menu): pip install ipywidgets"},
	{"anywidget", "pictures of attn.Explore come without their controls: pip install anywidget"},
}

// askVersions prints a line for each package, with its version where it is there.
const askVersions = `
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name)
`

// examineJupyter looks at the Jupyter that the command line would start.
func examineJupyter(ctx context.Context) []Finding {
	jupyter, err := exec.LookPath("jupyter")
	if err != nil {
		return []Finding{{Name: "jupyter", State: Absent, Detail: "none on the PATH",
			Cost: "nothing here opens notebooks: pip install jupyterlab, or use a front end that brings its own"}}
	}
	f := Finding{Name: "jupyter", Detail: jupyter}
	python := pythonOf(jupyter)
	args := []string{"-c", askVersions}
	for _, p := range ofJupyter {
		args = append(args, p.name)
	}
	out, err := exec.CommandContext(ctx, python, args...).Output()
	if err != nil {
		f.State, f.Cost = Absent, "which packages it has is not known: "+python+" does not tell"
		return []Finding{f}
	}
	findings := []Finding{f}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[name] = v
	}
	for _, p := range ofJupyter {
		f := Finding{Name: p.name, Detail: versions[p.name]}
		if f.Detail == "" {
			f.State, f.Detail, f.Cost = Absent, "not in "+python, p.cost
		}
		findings = append(findings, f)
	}
	return findings
}

// pythonOf is the Python that runs a script: by its first line, or else the one beside it, or the PATH's.
func pythonOf(script string) string {
	if f, err := os.Open(script); err == nil {
		line, _ := bufio.NewReader(f).ReadString('\n')
		f.Close()
		if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) == 1 &&
			strings.HasPrefix(filepath.Base(words[0]), "python") {
			return words[0]
		}
	}
	if real, err := filepath.EvalSymlinks(script); err == nil {
		script = real
	}
	if beside := filepath.Join(filepath.Dir(script), "python3"); isFile(beside) {
		return beside
	}
	return "python3"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
