package bound

import "github.com/attnb/attnb/reference"

// Split is [reference.Split] of rows [1, S, (H+2 KV) d]. A move is exact: errors go where their values go.
func Split(rows Heads, l reference.Layout, heads, kvHeads, dim int) (q, k, v Heads, err error) {
	if err = plain("Split", "rows", rows); err != nil {
		return
	}
	if q.Value, k.Value, v.Value, err = reference.Split(rows.Value[0], l, heads, kvHeads, dim); err != nil {
		return
	}
	q.Err, k.Err, v.Err, err = reference.Split(rows.Err[0], l, heads, kvHeads, dim)
	return
}

// Merge is [reference.Merge]; the result is [1, S, H d].
func Merge(x Heads) (Heads, error) {
	if _, err := measure("Merge", "x", x); err != nil {
		return Heads{}, err
	}
	return both(func(x reference.Heads) (reference.Heads, error) {
		merged, err := reference.Merge(x)
		return reference.Heads{merged}, err
	}, x)
}

// Unmerge is [reference.Unmerge] of rows [1, S, H d].
func Unmerge(rows Heads, heads int) (Heads, error) {
	if err := plain("Unmerge", "rows", rows); err != nil {
		return Heads{}, err
	}
	return both(func(x reference.Heads) (reference.Heads, error) { return reference.Unmerge(x[0], heads) }, rows)
}

// Swap is [reference.Swap].
func Swap(x Heads) (Heads, error) {
	if _, err := measure("Swap", "x", x); err != nil {
		return Heads{}, err
	}
	return both(reference.Swap, x)
}

// Append is [reference.Append]; the zero Heads stands for an empty cache.
func Append(old, rows Heads) (Heads, error) {
	if _, err := measure("Append", "rows", rows); err != nil {
		return Heads{}, err
	}
	if old.Value == nil && old.Err == nil {
		return both(func(x reference.Heads) (reference.Heads, error) { return reference.Append(nil, x) }, rows)
	}
	if _, err := measure("Append", "old", old); err != nil {
		return Heads{}, err
	}
	value, err := reference.Append(old.Value, rows.Value)
	if err != nil {
		return Heads{}, err
	}
	bound, err := reference.Append(old.Err, rows.Err)
	return Heads{value, bound}, err
}

// both moves the values and the errors of x.
func both(move func(reference.Heads) (reference.Heads, error), x Heads) (Heads, error) {
	value, err := move(x.Value)
	if err != nil {
		return Heads{}, err
	}
	bound, err := move(x.Err)
	return Heads{value, bound}, err
}

// plain says why x is no plain matrix, or nil.
func plain(op, name string, x Heads) error {
	s, err := measure(op, name, x)
	if err == nil && s.heads != 1 {
		err = &reference.Error{Op: op, Kind: reference.ErrShape, Detail: name + " is not a plain matrix"}
	}
	return err
}
