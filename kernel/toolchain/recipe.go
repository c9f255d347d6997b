package toolchain

import (
	"encoding/hex"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// recipe is how the go command built a cell: what it told the compiler and the linker, and all that this depended on. It
// serves every other cell with the same imports in the same circumstances, for as long as its inputs stay as they are.
type recipe struct {
	key           string  // the circumstances
	packages      string  // the compiler's import configuration
	linked        string  // the linker's
	compile, link command // with the marks below
	inputs        []input
}

// command is a call of the compiler or the linker.
type command struct{ env, args []string }

// What differs from cell to cell stands in a recipe as a mark.
const (
	objdir       = "$WORK/b001" // where the objects go; the go command's own mark
	moduleMark   = "$MODULE"    // the cell's module, which is named after its directory
	settingsMark = "$SETTINGS"  // what is written about the linker's flags into the program
	flagsMark    = "$FLAGS"     // the linker's flags, an argument each
	sourceMark   = "$SOURCE"    // the cell's file
)

// recipeFormat begins every key, so that another format or another way to build finds none of the old recipes.
const recipeFormat = "attnb recipe 1"

// renewal is how long a recipe is good for. Each time it is over, one build goes through the go command, which then also
// sees that what it has cached is still in use. It forgets what nobody used for five days.
const renewal = 24 * time.Hour

// input is a file or a directory as it was when the recipe was made.
type input struct {
	path               string
	size, mtime, inode int64 // mtime in ns; 0 where it does not count
}

// takeInput looks at path.
func takeInput(path string) (input, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return input{}, false
	}
	in := input{path: path, size: info.Size(), mtime: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		in.inode = int64(stat.Ino)
	}
	return in, true
}

// fresh says whether every input is as it was.
func (r *recipe) fresh() bool {
	for _, in := range r.inputs {
		found, ok := takeInput(in.path)
		if in.mtime == 0 {
			found.mtime = 0
		}
		if !ok || found != in {
			return false
		}
	}
	return true
}

// store is a directory of recipes, one file for each key. Without a directory it keeps none.
type store struct{ dir string }

func (s store) path(key string) string {
	sum := fnv.New128a() // the key itself is in the file and is compared
	_, _ = sum.Write([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(sum.Sum(nil)))
}

// load returns the recipe for key, or nil where there is none or it is due for renewal.
func (s store) load(key string) *recipe {
	if s.dir == "" {
		return nil
	}
	path := s.path(key)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()).Abs() > renewal {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	r := decode(string(text))
	if r == nil || r.key != key {
		return nil
	}
	return r
}

// drop removes the recipe for key.
func (s store) drop(key string) { _ = os.Remove(s.path(key)) }

// save keeps r, and removes what is past its time. When it cannot, the next cell asks the go command again.
func (s store) save(r *recipe) {
	if s.dir == "" || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()).Abs() > renewal {
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
		}
	}
	tmp, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return
	}
	_, err = tmp.WriteString(r.encode())
	if closed := tmp.Close(); err != nil || closed != nil || os.Rename(tmp.Name(), s.path(r.key)) != nil {
		_ = os.Remove(tmp.Name())
	}
}

// encode writes a recipe as texts that end in a zero byte, which none of them contains. Each list follows its length, and
// the last text is the format's name: a file that was cut off is no recipe.
func (r *recipe) encode() string {
	var out strings.Builder
	put := func(texts ...string) {
		for _, text := range texts {
			out.WriteString(text)
			out.WriteByte(0)
		}
	}
	number := func(n int64) string { return strconv.FormatInt(n, 36) }
	put(r.key, r.packages, r.linked)
	for _, list := range [][]string{r.compile.env, r.compile.args, r.link.env, r.link.args} {
		put(number(int64(len(list))))
		put(list...)
	}
	put(number(int64(len(r.inputs))))
	for _, in := range r.inputs {
		put(in.path, number(in.size), number(in.mtime), number(in.inode))
	}
	put(recipeFormat)
	return out.String()
}

// decode reads what encode wrote, and returns nil for anything else.
func decode(text string) *recipe {
	broken := false
	next := func() string {
		field, rest, found := strings.Cut(text, "\x00")
		broken = broken || !found
		text = rest
		return field
	}
	number := func() int64 {
		n, err := strconv.ParseInt(next(), 36, 64)
		broken = broken || err != nil
		return n
	}
	r := &recipe{key: next(), packages: next(), linked: next()}
	for _, list := range []*[]string{&r.compile.env, &r.compile.args, &r.link.env, &r.link.args} {
		for n := number(); n > 0 && !broken; n-- {
			*list = append(*list, next())
		}
	}
	for n := number(); n > 0 && !broken; n-- {
		r.inputs = append(r.inputs, input{path: next(), size: number(), mtime: number(), inode: number()})
	}
	if next() != recipeFormat || broken || text != "" || len(r.compile.args) == 0 || len(r.link.args) == 0 {
		return nil
	}
	return r
}
