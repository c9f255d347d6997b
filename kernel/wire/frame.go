package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Limits of a frame's body, in bytes. Bulk data travels beside frames, not inside.
const (
	MaxRequest = 4 << 20  // room for a million positions
	MaxAnswer  = 64 << 20 // room for a display
)

// chunk is how much memory is committed ahead of the bytes that fill it.
const chunk = 1 << 20

// ReadFrame reads one frame of at most limit bytes. io.EOF means that the stream ended between frames.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("wire: frame of %d bytes, limit is %d", n, limit)
	}
	return readGrowing(r, int(n))
}

// readGrowing reads n bytes, allocating as they come.
func readGrowing(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, 0, min(n, chunk))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, min(n, 2*cap(buf))), buf...)
		}
		next := buf[len(buf):cap(buf)]
		got, err := io.ReadFull(r, next)
		buf = buf[:len(buf)+got]
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}

// WriteFrame writes body as one frame, in one write.
func WriteFrame(w io.Writer, body []byte, limit int) error {
	if len(body) > limit {
		return fmt.Errorf("wire: frame of %d bytes, limit is %d", len(body), limit)
	}
	buf := make([]byte, 4, 4+len(body))
	binary.LittleEndian.PutUint32(buf, uint32(len(body)))
	_, err := w.Write(append(buf, body...))
	return err
}
