package viz

// The interactive view draws every cell in the browser: this many at most.
const (
	maxSide  = 64
	maxCells = 16 * maxSide * maxSide
)
