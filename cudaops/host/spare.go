package host

// What a freed array leaves is handed out again, like memory that malloc keeps: fresh memory comes from the system page by page, zeroed, which
// takes longer than a softmax over it.
const spareMost = 64 << 20 // bytes that are kept

// Tests change these, to find what is read before it is written.
var (
	spareLeast = 64 << 10        // bytes of an array that is worth keeping
	poison     func(x []float32) // is given what is freed
)

// spare keeps freed arrays, the newest last.
type spare struct {
	arrays [][]float32
	bytes  int
}

// take returns an array of n elements, of which nothing is known, or nil.
func (s *spare) take(n int) []float32 {
	for i := len(s.arrays) - 1; i >= 0; i-- {
		if x := s.arrays[i]; len(x) == n {
			s.remove(i)
			return x
		}
	}
	return nil
}

func (s *spare) give(x []float32) {
	if poison != nil {
		poison(x)
	}
	bytes := 4 * len(x)
	if bytes < spareLeast || bytes > spareMost {
		return
	}
	s.arrays = append(s.arrays, x)
	s.bytes += bytes
	for s.bytes > spareMost {
		s.remove(0)
	}
}

func (s *spare) remove(i int) {
	s.bytes -= 4 * len(s.arrays[i])
	copy(s.arrays[i:], s.arrays[i+1:])
	s.arrays[len(s.arrays)-1] = nil
	s.arrays = s.arrays[:len(s.arrays)-1]
}
