package plan

// Append grows a cache [Heads, Old, Dim] by New rows a head. The result is [Heads, Old+New, Dim] in an array that has
// room for Capacity rows a head.
type Append struct {
	Heads, Old, New, Dim int
	Capacity             int  // rows a head of the destination; 0 means Old + New
	OldCapacity          int  // rows a head of the previous array; 0 means Old
	HasPrevious          bool // a previous array was given
	// Where the new rows lie: elements from head to head and from row to row. 0 means that they touch.
	NewHeadStride, NewRowStride int
}

// Plan returns the copies of the old rows, from the previous array, and those of the new rows, from theirs. A previous
// array must be given exactly when Old is over 0, and New must be at least 1. Within capacity only the new rows
// need to move: run the second list alone.
func (a Append) Plan() (old, rows []PitchedCopy, err error) {
	const what = "append"
	if _, err := Elements(what, Dim{"heads", a.Heads}, Dim{"new rows", a.New}, Dim{"dim", a.Dim}); err != nil {
		return nil, nil, err
	}
	switch {
	case a.Old < 0:
		return nil, nil, refuse(what, "old rows is %d, must not be negative", a.Old)
	case a.Old == 0 && a.HasPrevious:
		return nil, nil, refuse(what, "a previous array was given, but it has 0 rows")
	case a.Old > 0 && !a.HasPrevious:
		return nil, nil, refuse(what, "%d old rows, but no previous array", a.Old)
	case uint64(a.Old) > MaxDim || uint64(a.Old)+uint64(a.New) > MaxDim:
		return nil, nil, refuse(what, "%d old rows and %d new rows are more than %d", a.Old, a.New, uint64(MaxDim))
	}
	capacity, oldCapacity := a.Capacity, a.OldCapacity
	if capacity == 0 {
		capacity = a.Old + a.New
	}
	if oldCapacity == 0 {
		oldCapacity = a.Old
	}
	if capacity < a.Old+a.New {
		return nil, nil, refuse(what, "capacity %d is below %d old and %d new rows", capacity, a.Old, a.New)
	}
	if oldCapacity < a.Old {
		return nil, nil, refuse(what, "capacity %d of the previous array is below its %d rows", oldCapacity, a.Old)
	}
	for _, c := range []int{capacity, max(oldCapacity, 1)} {
		if _, err := Elements(what, Dim{"heads", a.Heads}, Dim{"capacity", c}, Dim{"dim", a.Dim}); err != nil {
			return nil, nil, err
		}
	}
	rowStride, headStride := a.NewRowStride, a.NewHeadStride
	if rowStride == 0 {
		rowStride = a.Dim
	}
	if headStride == 0 {
		headStride = a.New * a.Dim
	}
	src := Gather{
		Rows: a.New, SrcRowStride: rowStride, HeadStride: headStride,
		Heads: a.Heads, Dim: a.Dim, HeadsMajor: true,
	}
	if _, err := src.SrcLen(); err != nil {
		return nil, nil, err
	}
	rows = make([]PitchedCopy, 0, a.Heads)
	if a.Old > 0 {
		old = make([]PitchedCopy, 0, a.Heads)
	}
	for h := range a.Heads {
		if a.Old > 0 {
			old = append(old, PitchedCopy{
				SrcOffset: h * oldCapacity * a.Dim, SrcPitch: a.Dim,
				DstOffset: h * capacity * a.Dim, DstPitch: a.Dim, Width: a.Dim, Height: a.Old,
			}.row())
		}
		rows = append(rows, PitchedCopy{
			SrcOffset: h * headStride, SrcPitch: rowStride,
			DstOffset: (h*capacity + a.Old) * a.Dim, DstPitch: a.Dim, Width: a.Dim, Height: a.New,
		}.row())
	}
	return old, rows, nil
}
