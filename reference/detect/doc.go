// Package detect finds out, from arrays alone, what went wrong: which layout, which RoPE, which mask explains these numbers.
//
// A detective takes tensors and a declaration of what they should be. It answers with a value that has Faults (how the
// tensors depart from the declaration, none when they do not), every explanation that fits (several when they give the same
// numbers: a tie), and a String for people. It never guesses: where nothing fits it says so, and where the data cannot
// decide between two explanations both are listed. Data from which nothing at all can be told is refused by an error that
// wraps [ErrTooLittle] and says what would be enough.
//
// Invariants ([Check]) need neither reference nor declaration. The precision ladder ([Ladder]) computes one cell in each
// number format, rounding by rounding. [Cache] and [Slots] look into a KV cache.
//
// All decide by an error within the noise floor of the data's [Precision], and by nothing else, so that NaN never passes.
package detect
