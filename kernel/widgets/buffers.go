package widgets

import "fmt"

// Binary values travel beside a message's JSON. In JSON an entry of an object is left out and one of a list is null; its place
// is told by a path of keys and indices.

// split returns v without its binary values ([]byte), the path of each, and the values. v itself stays as it is.
func split(v any) (rest any, paths [][]any, buffers [][]byte) {
	paths, buffers = [][]any{}, [][]byte{}
	var walk func(v any, path []any) (any, bool)
	walk = func(v any, path []any) (any, bool) {
		switch v := v.(type) {
		case []byte:
			paths = append(paths, append([]any{}, path...))
			buffers = append(buffers, v)
			return nil, true
		case State:
			return walk(map[string]any(v), path)
		case map[string]any:
			out := make(map[string]any, len(v))
			for _, key := range sortedKeys(v) {
				if x, binary := walk(v[key], append(path, key)); !binary {
					out[key] = x
				}
			}
			return out, false
		case []any:
			out := make([]any, len(v))
			for i, x := range v {
				out[i], _ = walk(x, append(path, i))
			}
			return out, false
		}
		return v, false
	}
	rest, _ = walk(v, nil)
	return rest, paths, buffers
}

// join is the inverse of split, on decoded JSON: it puts the buffers into state.
func join(state map[string]any, paths [][]any, buffers [][]byte) error {
	if len(paths) > len(buffers) {
		return fmt.Errorf("%d buffer paths for %d buffers", len(paths), len(buffers))
	}
	for i, path := range paths {
		if len(path) == 0 {
			return fmt.Errorf("buffer path %d is empty", i)
		}
		var at any = state
		for k, step := range path {
			last := k == len(path)-1
			switch in := at.(type) {
			case map[string]any:
				key, ok := step.(string)
				if !ok {
					return fmt.Errorf("buffer path %v: %v is no key", path, step)
				}
				if last {
					in[key] = buffers[i]
				}
				at = in[key]
			case []any:
				n, ok := step.(float64)
				if !ok || n != float64(int(n)) || n < 0 || int(n) >= len(in) {
					return fmt.Errorf("buffer path %v: %v is no index of %d entries", path, step, len(in))
				}
				if last {
					in[int(n)] = buffers[i]
				}
				at = in[int(n)]
			default:
				return fmt.Errorf("buffer path %v: nothing at %v", path, step)
			}
		}
	}
	return nil
}

// size is roughly how many bytes a value takes.
func size(v any) int {
	switch v := v.(type) {
	case []byte:
		return len(v)
	case string:
		return len(v)
	case State:
		return size(map[string]any(v))
	case map[string]any:
		n := 0
		for key, x := range v {
			n += len(key) + size(x)
		}
		return n
	case []any:
		n := 0
		for _, x := range v {
			n += size(x)
		}
		return n
	case []string:
		n := 0
		for _, x := range v {
			n += len(x)
		}
		return n
	}
	return 8
}
