package judge

import (
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
)

// Judge answers the questions of one client.
type Judge struct {
	*store.Client
	gallery *show.Gallery // for what goes with an answer to be seen
	budget  chain.Budget

	trials map[int]*trial // questions that wait for a function of the client's
	asked  int            // how many there were
}

// New is the judge of a client. What is zero of the budget is the usual.
func New(c *store.Client, g *show.Gallery, b chain.Budget) *Judge {
	return &Judge{Client: c, gallery: g, budget: b.Whole()}
}
