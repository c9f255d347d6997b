package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/wire"
)

// ownCommand is a % command that this kernel answers itself, without gonb. It returns plain text. %clear, which acts on
// the cell's output, and %help, which goes to the pager, are special.
type ownCommand func(k *Kernel, args []string) (string, error)

var own = map[string]ownCommand{
	"tensors": (*Kernel).listTensors,
	"device":  (*Kernel).describeDevice,
	"free":    (*Kernel).freeTensors,
	"save":    (*Kernel).saveTensors,
	"restore": (*Kernel).restoreTensors,
	"clear":   func(*Kernel, []string) (string, error) { return "", nil },
	"help":    help,
	"version": (*Kernel).versions,
}

// ownHelp says what they do.
var ownHelp = [][2]string{
	{"%tensors", "the named tensors: axes, shape, bytes, and what made them"},
	{"%device", "the device: what it is, memory in use, what it runs"},
	{"%free NAMES", "let go of named tensors"},
	{"%save FILE [NAMES]", "write named tensors, or all of them, to a .safetensors file"},
	{"%restore FILE [NAMES]", "bring them back, after a restart too"},
	{"%clear", "take away what the cell has put out so far"},
	{"%help", "this list"},
	{"%version", "the version of this kernel"},
}

// ownNames are the names of own.
var ownNames = map[string]bool{"tensors": true, "device": true, "free": true, "save": true, "restore": true, "clear": true, "help": true, "version": true}

// own runs one of the kernel's own commands. What a cell ends with is its result; any other is a display.
func (e *execution) own(s cell.Segment, last bool) *problem {
	words := s.Own.Words()
	text, err := own[words[0]](e.k, words[1:])
	if err != nil {
		if e.isInterrupted() {
			return e.interruption(s, nil)
		}
		return e.atLine("CommandError", s.Line, err.Error())
	}
	data := map[string]any{"text/plain": text}
	switch words[0] {
	case "clear":
		e.publish("clear_output", map[string]any{"wait": false})
		return nil
	case "help":
		if !e.stdin { // a program, which has no pager
			break
		}
		e.pages = append(e.pages, map[string]any{"source": "page", "data": data, "start": 0})
		return nil
	}
	content := map[string]any{"data": data, "metadata": map[string]any{}}
	if last {
		content["execution_count"] = e.k.count
		e.publish("execute_result", content)
	} else {
		content["transient"] = map[string]any{}
		e.publish("display_data", content)
	}
	return nil
}

func (k *Kernel) listTensors([]string) (string, error) {
	var a wire.Answer
	err := k.device.do(func(c *wire.Conn) (err error) {
		a, err = c.Do(wire.Request{Kind: wire.KindList})
		return err
	})
	if err != nil {
		return "", err
	}
	var named []wire.Tensor
	for _, t := range a.Tensors {
		if t.Name != "" {
			named = append(named, t)
		}
	}
	if len(named) == 0 {
		return "no named tensors", nil
	}
	slices.SortFunc(named, func(a, b wire.Tensor) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "name\taxes\tshape\tbytes\tmade by\tin cell")
	for _, t := range named {
		bytes := 4
		for _, n := range t.Shape {
			bytes *= n
		}
		made := ""
		if t.Cell > 0 {
			made = fmt.Sprintf("[%d]", t.Cell)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, strings.Join(t.Axes, " "), strings.Trim(fmt.Sprint(t.Shape), "[]"), amount(bytes), t.Made, made)
	}
	_ = w.Flush()
	return strings.TrimRight(b.String(), "\n"), nil
}

func (k *Kernel) describeDevice([]string) (string, error) {
	var s wire.Status
	err := k.device.do(func(c *wire.Conn) (err error) {
		s, err = c.Status()
		return err
	})
	if err != nil {
		return "", err
	}
	tensors := fmt.Sprintf("%d tensors", s.Tensors)
	switch s.Tensors {
	case 0:
		tensors = "no tensors"
	case 1:
		tensors = "1 tensor"
	}
	text := fmt.Sprintf("%s: %s\n%s, %s in use", s.Backend, s.Device, tensors, amount(s.InUse))
	if s.Total > 0 {
		text += " of " + amount(s.Total)
	}
	if s.Running == "" {
		return text + "\nidle", nil
	}
	text += fmt.Sprintf("\nruns %s, for %.1f s", s.Running, float64(s.RunningFor)/1e3)
	if s.Done > 0 {
		text += fmt.Sprintf(", %.0f%% done", 100*s.Done)
	}
	return text + fmt.Sprintf("; %d wait", s.Waiting), nil
}

func (k *Kernel) freeTensors(names []string) (string, error) {
	if len(names) == 0 {
		return "", errors.New("%free takes the names of tensors; %tensors lists them")
	}
	for _, name := range names {
		err := k.device.do(func(c *wire.Conn) error {
			_, err := c.Do(wire.Request{Kind: wire.KindFree, Name: name})
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return "freed " + strings.Join(names, ", "), nil
}

func (k *Kernel) versions([]string) (string, error) {
	return fmt.Sprintf("attnb %s, built by %s", k.opts.Version, runtime.Version()), nil
}

// gonbHelp says what gonb's commands do, in the order of use.
var gonbHelp = [][2]string{
	{"%%", "what follows is the body of main"},
	{"%args ARGS", "run the program with these arguments; so does %% ARGS"},
	{"%exec FUNC ARGS", "run FUNC as main"},
	{"%test", "run the cell's tests and benchmarks"},
	{"!COMMAND", "run a shell command; !*COMMAND in the directory where cells are built"},
	{"%%bash, %%sh, %%script PROGRAM", "give the rest of the cell to a program"},
	{"%%writefile [-a] FILE", "write the rest of the cell to a file"},
	{"%env NAME VALUE", "set an environment variable"},
	{"%cd [DIR]", "change the directory"},
	{"%ls, %rm NAMES, %reset", "list, forget some of, forget all of what cells declared"},
	{"%with_inputs, %with_password", "let the next shell line ask for input"},
	{"%capture [-a] FILE", "write the cell's output to a file too"},
	{"%goflags FLAGS", "flags of go build"},
	{"%autoget, %noautoget", "fetch missing modules, or do not"},
	{"%track PATH, %untrack PATH", "files that completion should know"},
}

func help(*Kernel, []string) (string, error) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, h := range append(slices.Clone(ownHelp), gonbHelp...) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", h[0], h[1])
	}
	_ = w.Flush()
	return strings.TrimRight(b.String(), "\n"), nil
}

// amount writes a number of bytes with a unit.
func amount(n int) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
