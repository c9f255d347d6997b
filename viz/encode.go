package viz

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"image"
	"image/png"
	"sync"
)

// encodePNG writes a picture as PNG, for which it knows palettes best. A picture of cells repeats pixels and whole lines, which filters of PNG tell in
// little: a line like the one above is its difference, all zero; one of pairs of equal pixels is its differences from the
// left. The standard library filters no palette picture, and writes nearly twice as many bytes where cells look like noise.
func encodePNG(img image.Image) ([]byte, error) {
	var out bytes.Buffer
	p, ok := img.(*image.Paletted)
	if !ok {
		e := png.Encoder{CompressionLevel: png.BestSpeed}
		err := e.Encode(&out, img)
		return out.Bytes(), err
	}
	out.WriteString("\x89PNG\r\n\x1a\n")
	w, h := p.Rect.Dx(), p.Rect.Dy()
	header := binary.BigEndian.AppendUint32(nil, uint32(w))
	header = binary.BigEndian.AppendUint32(header, uint32(h))
	chunk(&out, "IHDR", append(header, 8, 3, 0, 0, 0)) // 8 bits a pixel, of a palette
	var palette []byte
	for _, c := range p.Palette {
		r, g, b, _ := c.RGBA()
		palette = append(palette, byte(r>>8), byte(g>>8), byte(b>>8))
	}
	chunk(&out, "PLTE", palette)

	packed, err := packLines(p)
	if err != nil {
		return nil, err
	}
	chunk(&out, "IDAT", packed)
	chunk(&out, "IEND", nil)
	return out.Bytes(), nil
}

// bandPixels is about how many pixels are packed on their own, side by side with others: a large picture in half of the time on two
// cores, for some bytes in a thousand.
const bandPixels = 1 << 20

// packLines is the zlib stream of a picture's filtered lines. Bands of lines are packed each on its own and stand one after the other: a
// band ends on a whole byte, and the next refers to nothing before it. Where they lie depends on the picture alone.
func packLines(p *image.Paletted) ([]byte, error) {
	w, h := p.Rect.Dx(), p.Rect.Dy()
	bands := max(1, min(w*h/bandPixels, h))
	lines, packed, failed := make([][]byte, bands), make([]bytes.Buffer, bands), make([]error, bands)
	var wait sync.WaitGroup
	for i := range bands {
		wait.Go(func() {
			from, to := i*h/bands, (i+1)*h/bands
			lines[i] = make([]byte, (to-from)*(1+w))
			var above []byte
			if from > 0 {
				above = p.Pix[(from-1)*p.Stride:][:w]
			}
			for y := from; y < to; y++ {
				row := p.Pix[y*p.Stride:][:w]
				filter(lines[i][(y-from)*(1+w):][:1+w], row, above)
				above = row
			}
			failed[i] = deflate(&packed[i], lines[i], i == bands-1)
		})
	}
	wait.Wait()
	out := []byte{0x78, 0x01} // a window of 32 kB, the quickest way
	sum := adler32.New()
	for i := range bands {
		if failed[i] != nil {
			return nil, failed[i]
		}
		sum.Write(lines[i])
		out = append(out, packed[i].Bytes()...)
	}
	return binary.BigEndian.AppendUint32(out, sum.Sum32()), nil
}

// deflate packs data; what is not the last of a stream ends with an empty block.
func deflate(out *bytes.Buffer, data []byte, last bool) error {
	z, err := flate.NewWriter(out, flate.BestSpeed) // better ones take 5 times as long for 5% fewer bytes
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if last {
		return z.Close()
	}
	return z.Flush()
}

// The filters of PNG that are used, by their numbers.
const (
	filterNone = iota
	filterLeft
	filterAbove
)

// filter writes a row of pixels into line, behind the number of its filter.
func filter(line, row, above []byte) {
	if bytes.Equal(row, above) {
		clear(line)
		line[0] = filterAbove
		return
	}
	same, changes := 0, 0 // as the left neighbour, where the one before was not; and not
	for i := 1; i < len(row); i++ {
		if row[i] != row[i-1] {
			changes++
		} else if i > 1 && row[i-1] != row[i-2] {
			same++
		}
	}
	if changes < 64 || same < changes/2 { // text, or nothing doubled
		line[0] = filterNone
		copy(line[1:], row)
		return
	}
	line[0], line[1] = filterLeft, row[0]
	for i := 1; i < len(row); i++ {
		line[1+i] = row[i] - row[i-1]
	}
}

func chunk(out *bytes.Buffer, kind string, data []byte) {
	all := append([]byte(kind), data...)
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(data)))
	out.Write(n[:])
	out.Write(all)
	binary.BigEndian.PutUint32(n[:], crc32.ChecksumIEEE(all))
	out.Write(n[:])
}
