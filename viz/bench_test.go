package viz

import "testing"

func BenchmarkPNG(b *testing.B) {
	for _, c := range []struct {
		name     string
		heads, n int
	}{{"1x12x12", 1, 12}, {"1x64x64", 1, 64}, {"12x64x64", 12, 64}, {"12x128x128", 12, 128}, {"1x512x512", 1, 512}, {"1x4096x4096", 1, 4096}} {
		h := attention(c.heads, c.n)
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				p, err := h.PNG()
				if err != nil {
					b.Fatal(err)
				}
				size = len(p)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

func BenchmarkHTML(b *testing.B) {
	for _, heads := range []int{1, 12} {
		h := attention(heads, 64)
		b.Run(map[int]string{1: "1x64x64", 12: "12x64x64"}[heads], func(b *testing.B) {
			size := 0
			for b.Loop() {
				s, err := h.HTML()
				if err != nil {
					b.Fatal(err)
				}
				size = len(s)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
