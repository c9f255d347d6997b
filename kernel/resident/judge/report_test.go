package judge

import (
	"testing"

	"github.com/attnb/attnb/kernel/resident/store"
)

// Where failed cells lie is said as it is: heads that are no range too, unless the same could have come by chance.
func TestPattern(t *testing.T) {
	a := store.View{Meta: store.Meta{Shape: []int{8, 4, 16}, Axes: []string{"heads", "seq", "dim"}}, H: 8, S: 4, D: 16}
	all := func(heads ...int) (failed []int) {
		for _, h := range heads {
			for i := range a.S * a.D {
				failed = append(failed, h*a.S*a.D+i)
			}
		}
		return failed
	}
	for _, tc := range []struct {
		failed []int
		want   string
	}{
		{all(1, 3, 4, 6), "head 1, 3 to 4, 6 alone"}, // 2 KV heads tiled, not repeated
		{all(0, 7), "head 0, 7 alone"},
		{all(2), "head 2 alone"},
		{all(1, 2, 3), "head 1 to 3 alone"},
		{all(1, 3, 5, 7), "every second from head 1 on"},
		{all(1, 3, 5), "every second from head 1 to 5"},
		{all(0, 1, 2, 3, 4, 5, 6, 7), ""},
		{[]int{0, 70, 300, 400, 501}, ""}, // five cells here and there
	} {
		if got := pattern(a, tc.failed); got != tc.want {
			t.Errorf("%d cells: %q, want %q", len(tc.failed), got, tc.want)
		}
	}
}
