package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// What the way to another machine takes, where that is this one: go test -run '^$' -bench Far ./kernel/cmd/attnb
func BenchmarkFar(b *testing.B) {
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	near := attnb("device", "--socket", filepath.Join(dir, "s"))
	if err := near.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = near.Process.Kill()
		_ = near.Wait()
	}()
	r := startRelay(startSSHD(b), nil)
	r.dial()
	for _, way := range []struct{ name, socket, token string }{{"here", filepath.Join(dir, "s"), ""}, {"ssh", r.socket, r.token}} {
		dial := func() (c *wire.Conn) {
			eventually(b, "a device process answers", func() (ok bool) {
				var err error
				c, err = wire.DialAs(way.socket, way.token)
				return err == nil
			})
			return c
		}
		c := dial()
		b.Cleanup(func() { c.Close() })
		x := put(b, c, awkward)
		b.Run(way.name+"/op", func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpAdd, IDs: []int{x.ID, x.ID}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(way.name+"/connection", func(b *testing.B) {
			for b.Loop() {
				one := dial()
				if _, err := one.Do(wire.Request{Kind: wire.KindList}); err != nil {
					b.Fatal(err)
				}
				one.Close()
			}
		})
		big := random(4, 16<<20)
		b.Run(way.name+"/upload", func(b *testing.B) {
			b.SetBytes(4 * int64(len(big)))
			for b.Loop() {
				free(b, c, put(b, c, big))
			}
		})
		y := put(b, c, big)
		b.Run(way.name+"/download", func(b *testing.B) {
			b.SetBytes(4 * int64(len(big)))
			for b.Loop() {
				has(b, c, y.ID, big)
			}
		})
	}
}

func free(t testing.TB, c *wire.Conn, x wire.Tensor) {
	t.Helper()
	if _, err := c.Do(wire.Request{Kind: wire.KindFree, IDs: []int{x.ID}}); err != nil {
		t.Fatal(err)
	}
}
