package judge

import (
	"math"
	"testing"
)

func TestSampleRows(t *testing.T) {
	values := make([]float32, 4000)
	values[1000], values[2002], values[3001] = 7, -9, float32(math.NaN())
	rows := sampleOf(values, 4)
	if len(rows) != maxSampled || rows[0] != 0 || rows[1] != 999 || rows[2] != 250 || rows[3] != 500 || rows[4] != 750 {
		t.Errorf("%d rows, %v", len(rows), rows[:8])
	}
	if rows := sampleOf(values[:4], 4); len(rows) != 1 {
		t.Errorf("of one row: %v", rows)
	}
	values[0] = float32(math.NaN()) // does not keep the extremes from being found
	if rows := sampleOf(values, 4); rows[2] != 250 || rows[3] != 500 {
		t.Errorf("%v", rows[:8])
	}
}
