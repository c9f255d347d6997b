package far

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/attnb/attnb/kernel/resident/checkpoint"
	"github.com/attnb/attnb/kernel/wire"
)

// ask has the other machine answer a request that the relay itself makes, with values that follow it.
func (c *client) ask(ctx context.Context, what string, r wire.Request, values []float32) (wire.Answer, []float32, error) {
	up := &upload{}
	if r.DataLen = 4 * len(values); r.DataLen > 0 {
		up = newUpload(bytes.NewReader(wire.FloatBytes(values)), r.DataLen)
	}
	got, err := c.pass(ctx, what, r.Encode(), up)
	if err != nil {
		return wire.Answer{}, nil, err
	}
	a, err := wire.DecodeAnswer(got.body)
	if err == nil && a.Code != wire.OK {
		err = &wire.Error{Code: a.Code, Message: a.Message}
	}
	return a, got.down, err
}

// save writes the file here, of values that the other machine sends.
func (c *client) save(ctx context.Context, r wire.Request) (reply, error) {
	const what = "Save"
	ctx, done := c.r.files.Begin(ctx)
	defer done()
	path := r.Path
	r.Path = ""
	a, _, err := c.ask(ctx, what, r, nil)
	if err != nil {
		return reply{}, err
	}
	err = checkpoint.WriteFile(ctx, path, a.Text, a.Tensors, func(i int) ([]float32, error) {
		_, values, err := c.ask(ctx, what, wire.Request{Kind: wire.KindDownload, IDs: []int{a.Tensors[i].ID}}, nil)
		return values, err
	})
	a.Text = ""
	return answered(a), err
}

// restore reads the file here, and sends its values.
func (c *client) restore(ctx context.Context, r wire.Request) (reply, error) {
	const what = "Restore"
	ctx, done := c.r.files.Begin(ctx)
	defer done()
	made := wire.Request{Kind: wire.KindRestore, Member: filepath.Base(r.Path)}
	vacant := func(names []string) error {
		_, _, err := c.ask(ctx, what, wire.Request{Kind: wire.KindRestore, Names: names}, nil)
		return err
	}
	text, err := checkpoint.ReadFile(ctx, r.Path, r.Names, vacant, func(t wire.Tensor, values []float32) error {
		a, _, err := c.ask(ctx, what, wire.Request{Kind: wire.KindUpload, Shape: t.Shape, Axes: t.Axes}, values)
		if err == nil && len(a.Tensors) == 1 {
			made.IDs, made.Names = append(made.IDs, a.Tensors[0].ID), append(made.Names, t.Name)
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	made.Text = text
	a, _, err := c.ask(ctx, what, made, nil)
	return answered(a), err
}
