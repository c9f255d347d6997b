package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// seen is what a soak (tests/soak.py --store) saw of a kernel at one time.
type seen struct {
	Cells       int
	Seconds     float64
	MB          map[string]float64
	Descriptors map[string]float64
	Files       float64
}

var inks = []color.Color{color.RGBA{0x1f, 0x4e, 0xa8, 255}, color.RGBA{0xc8, 0x5a, 0x11, 255}, color.RGBA{0x2c, 0x80, 0x4a, 255}, color.RGBA{0x7a, 0x3d, 0x9e, 255}}

// soak draws memory and descriptors of each process, and the files of a kernel, over time.
func soak(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var measured struct{ States []seen }
	if err := json.Unmarshal(text, &measured); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	all := measured.States
	if len(all) < 2 {
		return fmt.Errorf("%s: %d states make no line", name, len(all))
	}
	last := all[len(all)-1]
	ours := func(of func(seen) map[string]float64) map[string]func(seen) float64 {
		lines := map[string]func(seen) float64{}
		for _, process := range []string{"kernel", "device", "gonb"} {
			lines[process] = func(s seen) float64 { return of(s)[process] }
		}
		return lines
	}
	title := fmt.Sprintf("%d cells in %.0f minutes", last.Cells, last.Seconds/60)
	memory, err := over(all, title+": memory", "MB", ours(func(s seen) map[string]float64 { return s.MB }))
	if err != nil {
		return err
	}
	open, err := over(all, "descriptors, and files of the kernel", "", ours(func(s seen) map[string]float64 { return s.Descriptors }))
	if err != nil {
		return err
	}
	files, err := line(all, func(s seen) float64 { return s.Files }, color.Gray{0x60})
	if err != nil {
		return err
	}
	files.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	open.Add(files)
	open.Legend.Add("files", files)
	return store(name, [][]*plot.Plot{{memory, open}})
}

// over draws lines over minutes, from 0 on.
func over(all []seen, title, unit string, lines map[string]func(seen) float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "minutes", unit
	p.Add(plotter.NewGrid())
	names := make([]string, 0, len(lines))
	most := 0.0
	for name, of := range lines {
		names = append(names, name)
		for _, s := range all {
			most = max(most, of(s))
		}
	}
	slices.Sort(names)
	for i, name := range names {
		l, err := line(all, lines[name], inks[i])
		if err != nil {
			return nil, err
		}
		p.Add(l)
		p.Legend.Add(name, l)
	}
	p.Legend.Top, p.Legend.YOffs, p.Legend.XOffs = true, -vg.Points(5), -vg.Points(6)
	p.Y.Min, p.Y.Max = 0, 1.5*most
	return p, nil
}

func line(all []seen, of func(seen) float64, ink color.Color) (*plotter.Line, error) {
	var at plotter.XYs
	for _, s := range all {
		at = append(at, plotter.XY{X: s.Seconds / 60, Y: of(s)})
	}
	l, err := plotter.NewLine(at)
	if err == nil {
		l.Color, l.Width = ink, vg.Points(1.6)
	}
	return l, err
}
