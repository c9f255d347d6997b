package plan

// Edge is where pool i of h begins in n elements: floor(i*n/h). Pool h is where the last one ends. h must be 1 to n.
func Edge(i, n, h int) int {
	return i*(n/h) + i*(n%h)/h // i*n may overflow
}

// Pool is the pool, of h, that holds element at of n: the inverse of [Edge].
func Pool(at, n, h int) int {
	i := min(int(float64(at)/float64(n)*float64(h)), h-1) // rounded, so a pool off at most
	for Edge(i, n, h) > at {
		i--
	}
	for Edge(i+1, n, h) <= at {
		i++
	}
	return i
}
