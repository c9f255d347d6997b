package proxy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
)

// replayLimit is how long the cell may run that declares everything again.
const replayLimit = 20 * time.Second

// memory is what gonb holds of the cells so far, kept so that another gonb can be told.
type memory struct {
	decls    *cell.Declarations
	file     string   // gonb's last main.go that compiled: all declarations
	settings []string // % commands that set something, in order
}

// learn updates the memory by a cell that gonb took.
func (m *memory) learn(e *execution, s cell.Segment, mainGo string) {
	for _, c := range e.text.Commands {
		if c.Kind != '%' || !s.Has(c) {
			continue
		}
		words := strings.Fields(c.Text)
		switch c.Name() {
		case "env", "cd", "goflags", "autoget", "noautoget", "track", "untrack":
			m.settings = append(m.settings, "%"+c.Text)
		case "rm", "remove":
			m.decls = m.decls.Without(words[1:]...)
		case "reset":
			if len(words) == 1 {
				m.decls = cell.NewDeclarations()
			}
		}
	}
	if s.Go {
		m.decls = m.decls.With(e.sent, e.number)
		m.file = mainGo
	}
}

// revive replaces a gonb that has ended, and tells the new one what cells had set and declared. It returns what the
// user should know.
func (k *Kernel) revive() (string, error) {
	old := k.gonb
	k.log.Error("gonb ended", "stderr", old.stderr.String())
	old.kill()
	k.killStrays()
	g, err := k.startGonb()
	if err != nil {
		return "", fmt.Errorf("gonb ended, and does not start again: %w", err)
	}
	inherit(old.temp, g.temp)
	old.removeFiles()
	k.setGonb(g)
	names := k.memory.decls.Names()
	said := "gonb ended and was started again; every named tensor is still there"
	if len(names) == 0 && len(k.memory.settings) == 0 {
		return said, nil
	}
	if err := k.replay(g); err != nil {
		k.log.Error("replay", "error", err)
		k.memory = memory{decls: cell.NewDeclarations()}
		return said + "; lost is what cells had declared: " + strings.Join(names, ", "), nil
	}
	if len(names) > 0 {
		said += "; declared again: " + strings.Join(names, ", ")
	}
	return said, nil
}

// replay runs one cell with all settings and declarations.
func (k *Kernel) replay(g *gonb) error {
	code := strings.Join(k.memory.settings, "\n") + "\n" + k.memory.decls.Replay(k.memory.file)
	content := executeContent(code, false)
	limit := time.AfterFunc(replayLimit, func() {
		for _, pid := range offspring(g.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	defer limit.Stop()
	reply, err := g.do("execute_request", content, func(*jupyter.Message) {}, nil)
	if err != nil {
		return err
	}
	if strings.Contains(string(reply.Content), `"status":"error"`) {
		return errors.New(string(reply.Content))
	}
	return nil
}

// killStrays ends what a dead gonb has left: gopls, cells and what they started.
func (k *Kernel) killStrays() {
	for _, pid := range runtimedir.Marked(k.dir.Path) {
		if pid != os.Getpid() && pid != k.device.pid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// inherit gives the new gonb's module what the old one's had: requirements, and the user's own files.
func inherit(oldTemp, newTemp string) {
	from, to := moduleDir(oldTemp), moduleDir(newTemp)
	if from == "" || to == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(from, "*"))
	for _, file := range files {
		name := filepath.Base(file)
		switch {
		case name == "main.go", name == "main_test.go", name == "other.go":
			continue
		case name != "go.mod" && name != "go.sum" && filepath.Ext(name) != ".go":
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if name == "go.mod" {
			text = []byte(strings.Replace(string(text), filepath.Base(from), filepath.Base(to), 1))
		}
		_ = os.WriteFile(filepath.Join(to, name), text, 0o600) // what cannot be copied is missed by a later build, which says so
	}
}

// removeFiles deletes what a gonb that has ended left in the runtime directory: what it cannot do itself any more.
func (g *gonb) removeFiles() {
	os.RemoveAll(g.temp)
	sockets, _ := filepath.Glob(strings.TrimSuffix(g.temp, "t") + "-*")
	for _, s := range sockets {
		os.Remove(s)
	}
}

// moduleDir is the directory in which gonb builds cells.
func moduleDir(temp string) string {
	found, _ := filepath.Glob(filepath.Join(temp, "gonb_*", "go.mod"))
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[0])
}

func executeContent(code string, stdin bool) map[string]any {
	return map[string]any{"code": code, "silent": true, "store_history": true, "allow_stdin": stdin,
		"stop_on_error": true, "user_expressions": map[string]any{}}
}
