package bound

import "github.com/attnb/attnb/reference"

// Embedding is [reference.Embedding] of a plain matrix. A row is copied with its errors.
func Embedding(table Heads, tokens []int) (Heads, error) {
	if err := plain("Embedding", "table", table); err != nil {
		return Heads{}, err
	}
	value, err := reference.Embedding(table.Value[0], tokens)
	if err != nil {
		return Heads{}, err
	}
	e, err := reference.Embedding(table.Err[0], tokens)
	return Heads{reference.Heads{value}, reference.Heads{e}}, err
}
