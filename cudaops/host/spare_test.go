package host

import "testing"

func TestSpare(t *testing.T) {
	var s spare
	small, large := make([]float32, spareLeast/4-1), make([]float32, spareMost/4+1)
	s.give(small)
	s.give(large)
	if s.take(len(small)) != nil || s.take(len(large)) != nil || s.bytes != 0 {
		t.Errorf("kept what is too small or too large: %d bytes", s.bytes)
	}
	third := make([]float32, spareMost/12)
	for i := range 5 {
		x := make([]float32, len(third)+i)
		s.give(x)
	}
	if s.bytes > spareMost || len(s.arrays) != 2 {
		t.Errorf("%d arrays, %d bytes are kept, at most %d may be", len(s.arrays), s.bytes, spareMost)
	}
	if s.take(len(third)+2) != nil {
		t.Error("an older one was kept in the place of a newer one")
	}
	x := s.take(len(third) + 4)
	if len(x) != len(third)+4 {
		t.Fatalf("the newest is gone")
	}
	if s.take(len(x)) != nil {
		t.Error("one array was handed out twice")
	}
}
