package resident

import (
	"context"
	"crypto/subtle"
	"errors"
	"os"
	"runtime/debug"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/checkpoint"
	"github.com/attnb/attnb/kernel/resident/files"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// answer does what a request asks. It never panics: a fault of ours becomes an answer, and the process stays.
func (c *conn) answer(r wire.Request, data *payload) (a wire.Answer, down []float32) {
	defer func() {
		if p := recover(); p != nil {
			c.s.log.Error("panic", "kind", r.Kind, "op", r.Op.String(), "value", p, "stack", string(debug.Stack()))
			a, down = failure(wire.Errorf(wire.Internal, "internal fault of the device process: %v", p)), nil
		}
	}()
	if !c.hello && r.Kind != wire.KindHello {
		return failure(wire.Errorf(wire.BadRequest, "the first message must be hello")), nil
	}
	if err := c.s.faulted(r); err != nil {
		return failure(err), nil
	}
	what := taskName(r)
	if r.Kind == wire.KindAsk && r.Question == nil {
		what = c.judge.Asking(r.Number)
	}
	if what != "" {
		t := c.s.tasks.begin(what)
		c.now.Store(&t.progress)
		defer func() {
			c.now.Store(nil)
			c.s.tasks.end(t)
		}()
	}
	a, down, err := c.dispatch(r, data)
	if err != nil {
		return c.s.refusal(err), nil
	}
	if r.Kind == wire.KindName || r.Kind == wire.KindFree || r.Kind == wire.KindRestore {
		c.s.keepRecord()
	}
	return a, down
}

// refusal is the answer to what failed, with what only the server knows.
func (s *server) refusal(err error) wire.Answer {
	var fault *store.DeviceFault
	if errors.As(err, &fault) {
		s.fail(fault)
	}
	a := failure(err)
	if a.Code == wire.OutOfMemory {
		a.Message += s.store.Largest(s.d.Info().MemoryTotal)
	}
	return a
}

func (c *conn) dispatch(r wire.Request, data *payload) (a wire.Answer, down []float32, err error) {
	switch r.Kind {
	case wire.KindHello:
		a, err = c.sayHello(r)
	case wire.KindUpload:
		a, err = c.upload(r, data)
	case wire.KindLoad:
		a, err = c.load(r, data)
	case wire.KindSave:
		a, err = c.transfer(r, checkpoint.Save)
	case wire.KindRestore:
		a, err = c.transfer(r, checkpoint.Restore)
	case wire.KindGet:
		a, err = c.Get(r)
	case wire.KindOnce:
		a = c.Once(r)
	case wire.KindName:
		a, err = c.SetName(r)
	case wire.KindFree:
		err = c.Free(r)
	case wire.KindList:
		a = c.List()
	case wire.KindRun:
		a, err = chain.Run(c.Client, r)
	case wire.KindDownload:
		err = c.download(r)
	case wire.KindPicture:
		a, err = c.s.gallery.Picture(c.Client, r)
	case wire.KindCheck:
		a, err = c.judge.Check(r)
	case wire.KindCompare:
		a, err = c.judge.Compare(r)
	case wire.KindExplore:
		a, err = c.s.gallery.Explore(c.Client, r)
	case wire.KindRerun:
		a, err = c.s.gallery.Rerun(r)
	case wire.KindRelease:
		c.s.gallery.Release(r)
	case wire.KindMap:
		a, err = c.s.gallery.Map(c.Client, r)
	case wire.KindDraw:
		a, err = c.s.gallery.Draw(c.Client, r)
	case wire.KindAsk:
		a, err = c.judge.Ask(r)
	case wire.KindModel:
		a, err = files.Model(r)
	case wire.KindTile:
		a, down, err = c.s.gallery.Tile(c.Client, r)
	case wire.KindShow:
		a, err = c.s.gallery.Show(r)
	case wire.KindDisplay:
		a, err = c.s.gallery.Take(r)
	case wire.KindStatus:
		a = c.status()
	case wire.KindCell:
		c.Store.SetCell(r.Number)
	case wire.KindInterrupt:
		c.s.d.Interrupt()
		c.s.files.Interrupt()
	case wire.KindShutdown:
	default:
		err = wire.Errorf(wire.BadRequest, "unknown request %d", r.Kind)
	}
	return a, down, err
}

func (c *conn) sayHello(r wire.Request) (wire.Answer, error) {
	if r.Number != wire.Version {
		return wire.Answer{}, wire.Errorf(wire.BadRequest,
			"the device process speaks version %d, this program version %d: restart the kernel", wire.Version, r.Number)
	}
	if t := c.s.token; t != "" && subtle.ConstantTimeCompare([]byte(r.Name), []byte(t)) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "the device process is of another kernel: this program does not know its token")
	}
	c.hello = true
	return wire.Answer{Number: wire.Version, Text: c.s.d.Info().Backend}, nil
}

// transfer saves or restores.
func (c *conn) transfer(r wire.Request, do func(context.Context, *store.Client, wire.Request) (wire.Answer, error)) (wire.Answer, error) {
	ctx, done := c.s.files.Begin(c.Ctx)
	defer done()
	return do(ctx, c.Client, r)
}

func (c *conn) upload(r wire.Request, data *payload) (wire.Answer, error) {
	if err := checkUpload("FromSlice", r); err != nil {
		return wire.Answer{}, err
	}
	return c.Leaf("FromSlice", store.Origin{Source: "FromSlice"}, r.Shape, r.Axes, data.fill)
}

// checkUpload refuses values of another number than a request's shape says, and axes that do not fit it.
func checkUpload(op string, r wire.Request) error {
	n, err := tensorfile.Elements(r.Shape)
	switch {
	case err != nil:
		return wire.Errorf(wire.BadInput, "%s: %v", op, err)
	case len(r.Shape) == 0 || len(r.Shape) > tensorfile.MaxRank:
		return wire.Errorf(wire.BadInput, "%s: %d dimensions, must be 1 to %d", op, len(r.Shape), tensorfile.MaxRank)
	case r.DataLen != 4*n:
		return wire.Errorf(wire.BadInput, "%s: %d values for %s, which has %d", op, r.DataLen/4, store.ShapeWords(r.Shape, r.Axes), n)
	}
	if err := store.CheckAxes(r.Shape, r.Axes); err != nil {
		return wire.Errorf(wire.BadInput, "%s: %v", op, err)
	}
	return nil
}

// download sends a tensor's values as they come, behind an answer that says how many: a refusal comes before.
func (c *conn) download(r wire.Request) error {
	return c.Download(r, func(all int, part []float32) error {
		if !c.sent {
			c.sent = true
			answer := wire.Answer{DataLen: 4 * all}
			if err := wire.WriteFrame(c.c, answer.Encode()); err != nil {
				return err
			}
		}
		_, err := c.c.Write(wire.FloatBytes(part))
		return err
	})
}

// load takes an array from a file, or, with a shape, the values that follow: the file is then on another machine, and was read there.
func (c *conn) load(r wire.Request, data *payload) (wire.Answer, error) {
	fill := data.fill
	if len(r.Shape) > 0 {
		if err := checkUpload("Load", r); err != nil {
			return wire.Answer{}, err
		}
	} else {
		read, values, err := files.Load(r)
		if err != nil {
			return wire.Answer{}, err
		}
		r, fill = read, store.FromSlice(values)
	}
	return c.Leaf("Load", store.Origin{Source: files.Source(r), Path: r.Path, Member: r.Member}, r.Shape, r.Axes, fill)
}

func (c *conn) status() wire.Answer {
	info, inUse := c.s.d.Info(), c.s.d.InUse()
	status := &wire.Status{Backend: info.Backend, Device: info.Device, InUse: int(inUse), Total: int(info.MemoryTotal),
		Tensors: c.Store.Count(), Displays: c.s.gallery.Waiting(), PID: os.Getpid()}
	c.s.tasks.describe(status, c.s.d.Progress())
	return wire.Answer{Status: status}
}
