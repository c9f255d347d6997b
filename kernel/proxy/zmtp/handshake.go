package zmtp

import (
	"encoding/binary"
	"fmt"
	"net"
)

// maxHandshake is the most bytes of a command in the handshake: a READY has a socket type and an identity of at most 255 bytes.
const maxHandshake = 1 << 12

// greetingSize is how many bytes come before the first command.
const greetingSize = 64

// handshake is a connection whose commands are looked at before zmq4 reads them: it makes room for as many bytes as a length
// says, and a length may say a terabyte.
type handshake struct {
	net.Conn
	left int    // bytes that may pass: the greeting's at first, then a command's
	head []byte // of the next command, as far as it has come
}

func (h *handshake) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if h.left > 0 {
		n, err := h.Conn.Read(b[:min(len(b), h.left)])
		h.left -= n
		return n, err
	}
	n, err := h.Conn.Read(b[:1])
	if n == 0 {
		return 0, err
	}
	h.head = append(h.head, b[0])
	size, whole := uint64(0), false
	switch long := h.head[0]&2 != 0; {
	case long && len(h.head) == 9:
		size, whole = binary.BigEndian.Uint64(h.head[1:]), true
	case !long && len(h.head) == 2:
		size, whole = uint64(h.head[1]), true
	}
	if size > maxHandshake {
		return 0, fmt.Errorf("malformed or oversized command of %d bytes", size)
	}
	if whole {
		h.left, h.head = int(size), h.head[:0]
	}
	return n, err
}
