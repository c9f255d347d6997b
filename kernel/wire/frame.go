package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxFrame is the most bytes that a frame's body may have: room for a display. Tensors travel beside frames, not inside.
const MaxFrame = 64 << 20

// chunk is how much memory is committed ahead of the bytes that fill it.
const chunk = 1 << 20

// ReadFrame reads one frame. io.EOF means that the stream ended between frames.
func ReadFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > MaxFrame {
		return nil, fmt.Errorf("wire: frame of %d bytes, the limit is %d", n, MaxFrame)
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
func WriteFrame(w io.Writer, body []byte) error {
	if len(body) > MaxFrame {
		return fmt.Errorf("wire: frame of %d bytes, the limit is %d", len(body), MaxFrame)
	}
	buf := make([]byte, 4, 4+len(body))
	binary.LittleEndian.PutUint32(buf, uint32(len(body)))
	_, err := w.Write(append(buf, body...))
	return err
}
