package wire

import "io"

// Reader reads ahead, so that a small frame costs one system call instead of one for its length and one for its body. It is what
// bufio has, without what bufio costs a cell.
type Reader struct {
	r   io.Reader
	buf []byte
	at  int // the next byte of buf
	n   int // the end of what was read
}

// NewReader reads from r, of which nobody else may read from then on.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, 4096)} }

// Read reads at most once from the stream, and only when nothing is left of what was read before.
func (r *Reader) Read(p []byte) (int, error) {
	if r.at == r.n {
		if len(p) >= len(r.buf) {
			return r.r.Read(p)
		}
		n, err := r.r.Read(r.buf)
		r.at, r.n = 0, n
		if n == 0 {
			return 0, err // an error beside data comes again at the next read
		}
	}
	n := copy(p, r.buf[r.at:r.n])
	r.at += n
	return n, nil
}
