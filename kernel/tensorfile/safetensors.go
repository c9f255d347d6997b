package tensorfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A .safetensors file is a u64 with the length of a header, the header (a JSON object: name -> dtype, shape, place in the
// data) and the data. It is read, not mapped: a mapped file that someone cuts short ends the process that reads it.
const (
	maxSafeHeader = 100 << 20 // as other readers of the format have it
	metadataKey   = "__metadata__"
	indexEnding   = ".index.json"
	maxIndex      = 100 << 20
)

type safeTensor struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// readSafetensors reads one tensor of a file of size bytes.
func readSafetensors(f io.ReaderAt, size int64, member string) ([]int, []float32, error) {
	tensors, base, err := safeHeader(f, size)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, 0, len(tensors))
	for name := range tensors {
		names = append(names, name)
	}
	slices.Sort(names)
	member, err = choose(names, member)
	if err != nil {
		return nil, nil, err
	}
	t := tensors[member]
	e, ok := elements[t.DType]
	if !ok {
		return nil, nil, fmt.Errorf("array %q: dtype %.40q, only F16, BF16, F32 and F64 can be loaded", member, t.DType)
	}
	if len(t.Shape) > MaxRank {
		return nil, nil, fmt.Errorf("array %q: %d dimensions, at most %d", member, len(t.Shape), MaxRank)
	}
	n, err := Elements(t.Shape)
	if err != nil {
		return nil, nil, fmt.Errorf("array %q: %w", member, err)
	}
	from, to := t.Offsets[0], t.Offsets[1]
	if want := int64(n) * int64(e.size); to-from != want {
		return nil, nil, fmt.Errorf("array %q: %d bytes of data, but shape %v of %s needs %d", member, to-from, t.Shape, e.name, want)
	}
	data, err := e.read(io.NewSectionReader(f, base+from, to-from), n)
	if err != nil {
		return nil, nil, fmt.Errorf("array %q: %w", member, err)
	}
	return t.Shape, data, nil
}

// safeHeader returns what the header says, and where the data begins. All that it says of places holds: they lie inside the
// file and do not overlap.
func safeHeader(f io.ReaderAt, size int64) (map[string]safeTensor, int64, error) {
	var length [8]byte
	if _, err := f.ReadAt(length[:], 0); err != nil {
		return nil, 0, errors.New("the file ends inside its header")
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxSafeHeader:
		return nil, 0, fmt.Errorf("a header of %d bytes is more than %d", n, maxSafeHeader)
	case int64(n) > size-8:
		return nil, 0, errors.New("the file ends inside its header")
	}
	text := make([]byte, n)
	if _, err := f.ReadAt(text, 8); err != nil && err != io.EOF {
		return nil, 0, bare(err)
	}
	raw, err := object(text)
	if err != nil {
		return nil, 0, fmt.Errorf("malformed header: %w", err)
	}
	tensors := make(map[string]safeTensor, len(raw))
	places := make([]safeTensor, 0, len(raw))
	for name, value := range raw {
		if name == metadataKey {
			continue
		}
		var t safeTensor
		if err := json.Unmarshal(value, &t); err != nil {
			return nil, 0, fmt.Errorf("malformed header: %q: %s", name, jsonReason(err))
		}
		if t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > size-8-int64(n) {
			return nil, 0, fmt.Errorf("%q lies at %d to %d of %d bytes of data", name, t.Offsets[0], t.Offsets[1], size-8-int64(n))
		}
		tensors[name] = t
		places = append(places, t)
	}
	slices.SortFunc(places, func(a, b safeTensor) int { return int(min(max(a.Offsets[0]-b.Offsets[0], -1), 1)) })
	for i := 1; i < len(places); i++ {
		if places[i].Offsets[0] < places[i-1].Offsets[1] {
			return nil, 0, errors.New("two arrays share the same bytes")
		}
	}
	return tensors, 8 + int64(n), nil
}

// object reads the keys of a JSON object, none of which may come twice.
func object(text []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	all := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New(jsonReason(err))
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("a key that is no string")
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New(jsonReason(err))
		}
		all[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New(jsonReason(err))
	}
	if rest, _ := io.ReadAll(d.Buffered()); strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("text behind it")
	}
	return all, nil
}

// jsonReason is a JSON error in one line.
func jsonReason(err error) string {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("no JSON from byte %d on", syntax.Offset)
	case errors.As(err, &typ):
		return fmt.Sprintf("%s where %s belongs", typ.Value, typ.Type)
	}
	return "it ends too early"
}

// readIndex reads the index of a model that is spread over several files, such as model.safetensors.index.json: which file beside
// it holds which tensor.
func readIndex(path string) (map[string]string, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxIndex {
		return nil, fmt.Errorf("an index of %d bytes is more than %d", size, maxIndex)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, bare(err)
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("malformed index: %s", jsonReason(err))
	}
	if len(index.WeightMap) == 0 {
		return nil, errors.New("an index without a weight_map")
	}
	return index.WeightMap, nil
}

// shard is the path of a file that an index names.
func shard(index, file string) (string, error) {
	if file != filepath.Base(file) || file == ".." || file == "." || strings.ContainsRune(file, 0) {
		return "", fmt.Errorf("the index names a file %q that does not lie beside it", file)
	}
	return filepath.Join(filepath.Dir(index), file), nil
}

// readShards reads a tensor of a model that is spread over several files. path is their index.
func readShards(path string, member string) ([]int, []float32, error) {
	files, err := readIndex(path)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if member, err = choose(names, member); err != nil {
		return nil, nil, err
	}
	file := files[member]
	at, err := shard(path, file)
	if err != nil {
		return nil, nil, err
	}
	f, size, err := openRegular(at)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	shape, data, err := readSafetensors(f, size, member)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return shape, data, nil
}

// isSafetensors reports whether a file begins as a .safetensors file does: the length of a header that it has room for, and {.
func isSafetensors(f *os.File, size int64) bool {
	var head [9]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return false
	}
	n := binary.LittleEndian.Uint64(head[:8])
	return head[8] == '{' && n >= 2 && n <= math.MaxInt64
}
