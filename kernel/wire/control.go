package wire

import "fmt"

// EnvControls names the environment variable with the path of the proxy's socket for controls of a running cell.
const EnvControls = "ATTNB_CONTROLS"

// Input is a control that a cell has on the page while it runs. It ends with the cell, and when a page closes it.
type Input struct {
	conn *Conn
	// Model is what a page shows; empty where the cell is run by a program, and nobody turns anything.
	Model string
}

// OpenInput has the proxy at path make a control for a page.
func OpenInput(path, nonce string, c Control) (*Input, error) {
	conn, err := Dial(path)
	if err != nil {
		return nil, fmt.Errorf("controls: %w", err)
	}
	a, err := conn.Do(Request{Kind: KindOpenControl, Name: nonce, Controls: []Control{c}})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Input{conn, a.Text}, nil
}

// Next waits for a page to turn the control, and returns its newest value. ok is false once there will be none.
func (in *Input) Next() (value float64, ok bool, err error) {
	if in.Model == "" {
		return 0, false, nil
	}
	a, err := in.conn.Do(Request{Kind: KindTurned})
	if err != nil || a.Control == nil {
		return 0, false, err
	}
	return a.Control.Value, true, nil
}

// Close ends the control, as the end of the program does.
func (in *Input) Close() error { return in.conn.Close() }
