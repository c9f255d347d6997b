package far

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/kernel/wire"
)

// stream carries one connection's requests to the device process, and its answers back, until the client or the link goes.
// A connection that waits for no answer when the link goes is parked. Any other is closed, which ends what it asked for: the relay says so to its client.
func (k *keeper) stream(mux *yamux.Session, st *yamux.Stream) {
	defer st.Close()
	var head [8]byte
	if _, err := io.ReadFull(st, head[:]); err != nil {
		return
	}
	id := binary.LittleEndian.Uint64(head[:])
	if id == bye {
		k.stop()
		return
	}
	c, err := k.connection(id)
	if err != nil {
		k.log.Warn("a connection", "error", err)
		return
	}
	if _, err := st.Write(idBytes(c.carried)); err != nil || c.dev == nil {
		if mux.IsClosed() {
			k.park(id, c)
		} else {
			c.close()
		}
		return
	}
	var waiting atomic.Int64 // requests without an answer
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_ = carryAnswers(st, c.dev, &waiting)
		st.Close()
	}()
	_ = c.carryRequests(st, &waiting)
	lost := mux.IsClosed()
	if lost && waiting.Load() == 0 {
		_ = c.dev.SetReadDeadline(time.Unix(1, 0)) // ends the reading of answers, of which there are none
		<-answers
		if c.dev.SetReadDeadline(time.Time{}) == nil {
			k.park(id, c)
			return
		}
	}
	c.dev.Close()
	<-answers
	if lost {
		k.park(id, &connection{carried: broken})
	}
}

// carryRequests ends with the stream.
func (c *connection) carryRequests(st io.Reader, waiting *atomic.Int64) error {
	in := wire.NewReader(st)
	for {
		body, err := wire.ReadFrame(in)
		if err != nil {
			return err
		}
		r, err := wire.DecodeRequest(body)
		if err != nil {
			return err
		}
		waiting.Add(1)
		c.carried++
		if err := wire.WriteFrame(c.dev, body); err != nil {
			return err
		}
		if r.DataLen > 0 {
			if _, err := io.CopyN(c.dev, in, int64(r.DataLen)); err != nil {
				return err
			}
		}
	}
}

func carryAnswers(st io.Writer, dev io.Reader, waiting *atomic.Int64) error {
	in := wire.NewReader(dev)
	for {
		body, err := wire.ReadFrame(in)
		if err != nil {
			return err
		}
		a, err := wire.DecodeAnswer(body)
		if err != nil {
			return err
		}
		if err := wire.WriteFrame(st, body); err != nil {
			return err
		}
		if a.DataLen > 0 {
			if _, err := io.CopyN(st, in, int64(a.DataLen)); err != nil {
				return err
			}
		}
		waiting.Add(-1)
	}
}
