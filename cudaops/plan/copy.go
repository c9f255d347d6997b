package plan

// PitchedCopy copies Height rows of Width elements. Row r goes from SrcOffset + r*SrcPitch of the source to
// DstOffset + r*DstPitch of the destination.
type PitchedCopy struct {
	SrcOffset, DstOffset int
	SrcPitch, DstPitch   int
	Width, Height        int
}

// Validate refuses an empty copy, a pitch below the width, and any access past either end of a source of srcLen
// and a destination of dstLen elements; an exact fit is accepted. No sum in it can overflow unnoticed.
func (c PitchedCopy) Validate(srcLen, dstLen int) error {
	const what = "pitched copy"
	switch {
	case c.Width <= 0:
		return refuse(what, "width is %d, must be at least 1", c.Width)
	case c.Height <= 0:
		return refuse(what, "height is %d, must be at least 1", c.Height)
	}
	if err := c.side(what, "source", c.SrcOffset, c.SrcPitch, srcLen); err != nil {
		return err
	}
	return c.side(what, "destination", c.DstOffset, c.DstPitch, dstLen)
}

func (c PitchedCopy) side(what, name string, offset, pitch, length int) error {
	switch {
	case offset < 0:
		return refuse(what, "%s offset is %d, must not be negative", name, offset)
	case pitch < c.Width:
		return refuse(what, "%s pitch %d is below the width %d", name, pitch, c.Width)
	}
	end, ok := mulAdd(c.Height-1, pitch, offset)
	if ok {
		end, ok = mulAdd(1, end, c.Width)
	}
	if !ok {
		return refuse(what, "%s end (%d rows at pitch %d from offset %d) overflows", name, c.Height, pitch, offset)
	}
	if end > length {
		return refuse(what, "%s ends at %d, past its %d elements", name, end, length)
	}
	return nil
}

// row joins the rows of a copy into one where they touch on both sides: one long row copies faster than many short
// ones. Its pitches become the width, as nothing steps by them.
func (c PitchedCopy) row() PitchedCopy {
	if c.SrcPitch != c.Width || c.DstPitch != c.Width {
		return c
	}
	w := c.Width * c.Height
	c.Width, c.SrcPitch, c.DstPitch, c.Height = w, w, w, 1
	return c
}
