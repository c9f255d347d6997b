package cell

import (
	"go/scanner"
	"go/token"
	"strings"
)

// IsComplete says whether a console may run code as it stands: "complete", "incomplete" with the indent of the next
// line, or "invalid".
func IsComplete(code string) (state, indent string) {
	t := Parse(code)
	last := t.Lines[len(t.Lines)-1]
	if strings.TrimSpace(code) == "" {
		return "complete", ""
	}
	if !t.IsGo() {
		if len(t.Lines) > 1 && strings.TrimSpace(last) == "" {
			return "complete", ""
		}
		return "incomplete", ""
	}
	if n := len(t.Commands); n > 0 && t.Commands[n-1].Last == len(t.Lines)-1 && strings.HasSuffix(last, `\`) {
		return "incomplete", ""
	}
	var open []token.Token
	inMain, unfinished, operator := false, false, false
	var file strings.Builder
	for i, line := range t.Lines {
		inMain = inMain || startsMain(line) && !strings.HasPrefix(trimPrefix(line), "%exec")
		if !t.used[i] {
			file.WriteString(line)
		}
		file.WriteByte('\n')
	}
	src := []byte(file.String())
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(src)), src, func(_ token.Position, msg string) {
		// These end with the text: a raw string or a comment that goes on. Other mistakes are the compiler's to name.
		if strings.Contains(msg, "raw string literal not terminated") || strings.Contains(msg, "comment not terminated") {
			unfinished = true
		}
	}, 0)
	closes := map[token.Token]token.Token{token.RPAREN: token.LPAREN, token.RBRACE: token.LBRACE, token.RBRACK: token.LBRACK}
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		switch tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, tok)
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(open) == 0 || open[len(open)-1] != closes[tok] {
				return "invalid", ""
			}
			open = open[:len(open)-1]
		}
		if tok != token.SEMICOLON || lit != "\n" {
			operator = tok.IsOperator() && !ends(tok)
		}
	}
	switch {
	case unfinished:
		return "incomplete", ""
	case len(open) > 0 || operator:
		return "incomplete", strings.Repeat("\t", max(len(open), 1))
	case inMain && strings.TrimSpace(last) != "" && !t.used[len(t.Lines)-1]:
		return "incomplete", "" // a blank line ends what follows %%
	case inMain && t.used[len(t.Lines)-1]:
		return "incomplete", ""
	}
	return "complete", ""
}

// ends reports whether a statement can end with an operator token.
func ends(t token.Token) bool {
	switch t {
	case token.RPAREN, token.RBRACE, token.RBRACK, token.INC, token.DEC, token.SEMICOLON:
		return true
	}
	return false
}
