package spec

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Place is where an installation goes: its home, and the directory of Jupyter's that gets the kernelspec.
type Place struct {
	Home    Home
	Kernels string // holds one directory for each kernelspec
}

// kernelName is the kernelspec's name, and its directory's.
const kernelName = "attnb"

// Kernelspec is the directory of the kernelspec.
func (p Place) Kernelspec() string { return filepath.Join(p.Kernels, kernelName) }

// PrefixPlace is the place below a prefix, such as a virtual environment or /usr/local.
func PrefixPlace(prefix string) (Place, error) {
	prefix, err := filepath.Abs(prefix)
	if err != nil {
		return Place{}, fmt.Errorf("spec: prefix: %w", err)
	}
	share := filepath.Join(prefix, "share")
	return Place{Home: Home{Root: filepath.Join(share, "attnb")}, Kernels: filepath.Join(share, "jupyter", "kernels")}, nil
}

// UserPlace is the place for the user's own Jupyter.
func UserPlace() (Place, error) {
	data, err := jupyterDataDir()
	if err != nil {
		return Place{}, err
	}
	share, err := userShare()
	if err != nil {
		return Place{}, err
	}
	return Place{Home: Home{Root: filepath.Join(share, "attnb")}, Kernels: filepath.Join(data, "kernels")}, nil
}

func userShare() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("spec: no home directory: %w", err)
	}
	return filepath.Join(home, ".local", "share"), nil
}

// jupyterDataDir is where Jupyter looks for what the user installed: jupyter_core's jupyter_data_dir.
func jupyterDataDir() (string, error) {
	if dir := os.Getenv("JUPYTER_DATA_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if runtime.GOOS == "darwin" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("spec: no home directory: %w", err)
		}
		return filepath.Join(home, "Library", "Jupyter"), nil
	}
	share, err := userShare()
	return filepath.Join(share, "jupyter"), err
}

// sysPrefix is the prefix of the Python environment in use, as Python's sys.prefix.
func sysPrefix() (string, error) {
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(name); dir != "" {
			return dir, nil
		}
	}
	out, err := exec.Command("python3", "-c", "import sys; print(sys.prefix)").Output()
	if err != nil {
		return "", fmt.Errorf("spec: --sys-prefix asks python3 for its prefix: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

var errOnePlace = errors.New("give one of --user, --sys-prefix and --prefix DIR")

// choice is the flags that choose a place.
type choice struct {
	user, sys bool
	prefix    string
}

func (c *choice) register(flags *flag.FlagSet) {
	flags.BoolVar(&c.user, "user", false, "for your own Jupyter, in your home directory")
	flags.BoolVar(&c.sys, "sys-prefix", false, "for the Python environment in use (a virtual or conda environment)")
	flags.StringVar(&c.prefix, "prefix", "", "below `DIR`: DIR/share/attnb and DIR/share/jupyter/kernels/attnb")
}

func (c *choice) place() (Place, error) {
	switch {
	case c.user && !c.sys && c.prefix == "":
		return UserPlace()
	case c.sys && !c.user && c.prefix == "":
		prefix, err := sysPrefix()
		if err != nil {
			return Place{}, err
		}
		return PrefixPlace(prefix)
	case c.prefix != "" && !c.user && !c.sys:
		return PrefixPlace(c.prefix)
	}
	return Place{}, errOnePlace
}

// newFlags returns a flag set that explains a command on standard error when asked, or when it is called wrongly.
func newFlags(name, usage string, errs io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "usage: attnb %s\n", usage)
		flags.PrintDefaults()
	}
	return flags
}
