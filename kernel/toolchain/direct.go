package toolchain

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workDir is where the compiler and the linker leave their output, in the cell's directory. The go command looks into no
// directory whose name begins with a dot.
const workDir = ".attnb"

// follow builds the cell as its recipe says, by the two commands that the go command would run, and says whether the recipe
// still holds and whether that worked. When not, nothing was said and nothing changed: the go command then builds the cell,
// or says why it cannot.
func (b *build) follow(r *recipe) (fresh, built bool) {
	work := filepath.Join(b.dir, workDir)
	if err := os.MkdirAll(work, 0o700); err != nil {
		return true, false
	}
	holds := make(chan bool, 1)
	go func() { holds <- r.fresh() }()
	within := strings.NewReplacer(objdir, work, moduleMark, filepath.Base(b.dir))
	compiled := write(work, "importcfg", within.Replace(r.packages)) &&
		b.tool(r.compile, within, filepath.Join(b.dir, cellFile))
	if fresh = <-holds; !fresh || !compiled {
		return fresh, false
	}
	program := filepath.Join(work, "exe", "a.out")
	within = strings.NewReplacer(objdir, work, moduleMark, filepath.Base(b.dir), settingsMark, b.settings())
	return true, os.MkdirAll(filepath.Dir(program), 0o700) == nil &&
		write(work, "importcfg.link", within.Replace(r.linked)) &&
		b.tool(r.link, within) &&
		os.Rename(program, b.program) == nil
}

// tool runs the compiler or the linker without a word, and says whether it was content.
func (b *build) tool(c command, within *strings.Replacer, files ...string) bool {
	var args []string
	for _, arg := range c.args {
		switch arg {
		case flagsMark:
			args = append(args, b.linkFlags()...)
		case sourceMark:
			args = append(args, files...)
		default:
			args = append(args, within.Replace(arg))
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = b.dir
	// Both tools live for a fraction of a second: collecting garbage costs a tenth of it. The limit is for large programs.
	cmd.Env = append(append(b.env, c.env...), "GOGC=off", "GOMEMLIMIT=1GiB", "PWD="+b.dir)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = toolAttr()
	return cmd.Run() == nil && said.Len() == 0 // who warns is heard through the go command
}

func write(dir, name, text string) bool {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) == nil
}
