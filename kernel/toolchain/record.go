package toolchain

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// record builds the cell through the go command, and returns a recipe too where what it did is as plain as we take it to be.
// done says whether the program was built.
func (b *build) record() (r *recipe, done bool) {
	listed := make(chan []string, 1)
	go func() { listed <- b.sources() }()
	var said bytes.Buffer
	cmd := exec.Command(b.real, "build", "-x", "-o", b.program, "-buildvcs=false", "-ldflags="+b.goFlags())
	cmd.Dir, cmd.Env, cmd.Stderr = b.dir, b.env, &said
	cmd.SysProcAttr = toolAttr()
	err := cmd.Run()
	sources := <-listed
	if err != nil {
		return nil, false
	}
	if r = b.parse(said.String()); r == nil || sources == nil {
		return nil, true
	}
	r.inputs = []input{{path: b.real}, {path: filepath.Join(goroot(b.real), "VERSION")}, {path: r.compile.args[0]}, {path: r.link.args[0]}}
	for _, path := range sources {
		r.inputs = append(r.inputs, input{path: path})
	}
	return r, true
}

// sources lists the directories and the files of all packages that the cell is made of, but itself.
func (b *build) sources() []string {
	const files = "{{range .%s}}{{$.Dir}}/{{.}}\n{{end}}"
	format := "{{.Dir}}\n{{if not .Standard}}{{range .IgnoredGoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{end}}"
	for _, kind := range []string{"GoFiles", "CgoFiles", "CFiles", "HFiles", "SFiles", "SysoFiles", "EmbedFiles"} {
		format += strings.Replace(files, "%s", kind, 1)
	}
	cmd := exec.Command(b.real, append([]string{"list", "-deps", "-f", format, "runtime"}, b.imports...)...)
	cmd.Dir, cmd.Env = b.dir, b.env
	cmd.SysProcAttr = toolAttr()
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var paths []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if filepath.IsAbs(line) {
			paths = append(paths, line)
		}
	}
	return paths
}

// takeInputs looks at each input. It fails when one is missing, or was changed after the build began: what the go command
// read may then have been something else.
func (r *recipe) takeInputs(began time.Time) bool {
	const clock = 20 * time.Millisecond // the step of a file system's clock, at most
	for i, in := range r.inputs {
		found, ok := takeInput(in.path)
		if !ok || found.mtime >= began.Add(-clock).UnixNano() {
			return false
		}
		r.inputs[i] = found
	}
	for line := range strings.SplitSeq(r.linked, "\n") {
		archive, ok := strings.CutPrefix(line, "packagefile ")
		if !ok || strings.Contains(line, objdir) {
			continue
		}
		_, path, _ := strings.Cut(archive, "=")
		found, ok := takeInput(path)
		if !ok {
			return false
		}
		found.mtime = 0 // the go command touches what it uses; its name in the cache is the hash of its content
		r.inputs = append(r.inputs, found)
	}
	return true
}

// parse reads a recipe from what `go build -x` printed, or returns nil when it sees anything but one plain compilation and
// link of the cell.
func (b *build) parse(said string) *recipe {
	r := &recipe{}
	work, rest, _ := strings.Cut(strings.TrimPrefix(said, "WORK="), "\n")
	if work == "" || work == said {
		return nil
	}
	name := filepath.Base(b.dir)
	general := func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, filepath.Join(work, "b001"), objdir), name, moduleMark)
	}
	lines := strings.Split(rest, "\n")
	var cached []string // where a package was made, where it is kept
	for i := 0; i < len(lines); i++ {
		if file, ok := strings.CutPrefix(lines[i], "cat >"); ok {
			file, _, _ = strings.Cut(file, " << 'EOF'")
			length := slices.Index(lines[i+1:], "EOF")
			if length < 0 {
				return nil
			}
			text := strings.Join(lines[i+1:i+1+length], "\n") + "\n"
			switch strings.Replace(file, work, "$WORK", 1) {
			case objdir + "/importcfg":
				r.packages = general(text)
			case objdir + "/importcfg.link":
				r.linked = general(strings.Replace(text, b.settings(), settingsMark, 1))
			}
			i += length + 1
			continue
		}
		if made, ok := strings.CutPrefix(lines[i], "cp $WORK/"); ok { // of a package, into the cache
			from, to, _ := strings.Cut(strings.TrimSuffix(made, " # internal"), " ")
			cached = append(cached, filepath.Join(work, from), to)
			continue
		}
		c, ok := splitCommand(lines[i])
		if !ok || !slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, objdir+"/") }) {
			continue
		}
		switch filepath.Base(c.args[0]) {
		case "compile":
			if r.compile.args != nil || c.args[len(c.args)-1] != "./"+cellFile {
				return nil
			}
			c.args[len(c.args)-1] = sourceMark
			r.compile = c
		case "link":
			if r.link.args != nil || !c.replace(b.linkFlags(), flagsMark) {
				return nil
			}
			r.link = c
		case "asm", "cgo", "pack", "cover", "gcc", "clang":
			return nil
		}
	}
	if !r.plain() {
		return nil
	}
	kept := strings.NewReplacer(cached...)
	r.packages, r.linked = kept.Replace(r.packages), kept.Replace(r.linked)
	return r
}

// plain says whether a recipe has what following it relies on.
func (r *recipe) plain() bool {
	return r.compile.take("-o", objdir+"/_pkg_.a") && r.compile.take("-importcfg", objdir+"/importcfg") &&
		r.link.take("-o", objdir+"/exe/a.out") && r.link.take("-importcfg", objdir+"/importcfg.link") &&
		r.compile.identify("-buildid", ourBuildID+"/"+ourBuildID) && r.link.identify("-buildid", ourBuildID) &&
		strings.Contains(r.linked, "packagefile "+moduleMark+"="+objdir+"/_pkg_.a\n") &&
		strings.Count(r.linked, settingsMark) == 1 && !strings.Contains(r.linked, "packagefile runtime/cgo=") &&
		!slices.ContainsFunc(r.link.args, func(arg string) bool { return strings.Contains(arg, "onceHashes") })
}

// ourBuildID is the build ID of what a recipe made. The go command takes such a program for that of another build.
const ourBuildID = "attnb"

// take says whether the command has the flag with this value.
func (c *command) take(flag, value string) bool {
	i := slices.Index(c.args, flag)
	return i > 0 && i+1 < len(c.args) && c.args[i+1] == value
}

// identify replaces the value of a flag, and says whether it was there.
func (c *command) identify(flag, value string) bool {
	for i, arg := range c.args {
		switch {
		case arg == flag && i+1 < len(c.args):
			c.args[i+1] = value
			return true
		case strings.HasPrefix(arg, flag+"="):
			c.args[i] = flag + "=" + value
			return true
		}
	}
	return false
}

// replace puts mark in the place of a run of arguments, and says whether it was there.
func (c *command) replace(run []string, mark string) bool {
	for i := range c.args {
		if len(c.args)-i >= len(run) && slices.Equal(c.args[i:i+len(run)], run) {
			c.args = slices.Replace(c.args, i, i+len(run), mark)
			return true
		}
	}
	return false
}

// splitCommand takes apart a command as `go build -x` prints it: NAME='value' or NAME="value", then arguments, quoted as
// in Go where they need it.
func splitCommand(line string) (command, bool) {
	var c command
	for line != "" {
		name, value, isEnv := strings.Cut(line, "='")
		if isEnv && len(c.args) == 0 && name != "" && !strings.ContainsAny(name, " \"/") {
			value, rest, closed := strings.Cut(value, "' ")
			if !closed {
				return c, false
			}
			c.env, line = append(c.env, name+"="+value), rest
			continue
		}
		var arg string
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return c, false
			}
			if arg, err = strconv.Unquote(quoted); err != nil {
				return c, false
			}
			line = line[len(quoted):]
		} else {
			end := strings.IndexByte(line, ' ')
			if end < 0 {
				end = len(line)
			}
			arg, line = line[:end], line[end:]
		}
		c.args = append(c.args, arg)
		line = strings.TrimPrefix(line, " ")
	}
	return c, len(c.args) > 0
}
