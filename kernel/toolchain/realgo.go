package toolchain

import (
	"bufio"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/spec"
)

var errNoGo = errors.New("no go command on PATH: install Go, then start the kernel again")

// realGo finds the go command that stands behind us: the installation's own, else the first on path that is no stand-in.
func realGo(home spec.Home, path string) (string, error) {
	if root := home.GoRoot(); root != "" {
		return filepath.Join(root, "bin", "go"), nil
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // what a relative entry means changes with each cell's directory
		}
		candidate := filepath.Join(dir, "go")
		info, err := os.Stat(candidate)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		// The stand-in of another installation would look for its own go, and find us.
		if target, err := filepath.EvalSymlinks(candidate); err != nil || filepath.Base(target) == filepath.Base(home.Cell()) {
			continue
		}
		return candidate, nil
	}
	return "", errNoGo
}

// goroot is the root of the toolchain that real belongs to, or "" where it cannot be told without running it.
func goroot(real string) string {
	root := os.Getenv("GOROOT")
	if root == "" {
		target, err := filepath.EvalSymlinks(real)
		if err != nil {
			return ""
		}
		root = filepath.Dir(filepath.Dir(target))
	}
	if !exists(filepath.Join(root, "src", "runtime")) {
		return ""
	}
	return root
}

// cellEnviron is the environment in which the real go works on a cell: modules come from the installation first.
func cellEnviron(home spec.Home, real string) []string {
	mod := url.URL{Scheme: "file", Path: filepath.ToSlash(home.Mod())}
	proxy := strings.NewReplacer(",", "%2C", "|", "%7C").Replace(mod.String())
	if user := goSetting("GOPROXY", goroot(real)); user != "" {
		proxy += "," + user
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOPROXY=") })
	return append(env, "GOPROXY="+proxy)
}

// goSetting is what `go env name` says, for a setting that is plain text, without the 8 ms of asking: the environment,
// then the file of `go env -w`, then the toolchain's own file.
func goSetting(name, goroot string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	for _, file := range []string{envFile(), filepath.Join(goroot, "go.env")} {
		if value := settingIn(file, name); value != "" {
			return value
		}
	}
	return ""
}

// envFile is the file of `go env -w`, or "".
func envFile() string {
	if file := os.Getenv("GOENV"); file != "" {
		return file
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go", "env")
}

func settingIn(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), name+"="); ok {
			return value
		}
	}
	return ""
}
