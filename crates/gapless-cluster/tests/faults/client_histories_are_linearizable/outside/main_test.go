package main

import (
	"fmt"
	"strings"
	"testing"
)

// history writes events such as "0 invoke r 1 nil", a nanosecond apart.
func history(events ...string) string {
	var text strings.Builder
	for index, event := range events {
		parts := strings.SplitN(event, " ", 3)
		fmt.Fprintf(&text, "{:index %d, :type :%s, :f :txn, :value [[:%s]], :process %s, :time %d}\n",
			index, parts[1], parts[2], parts[0], index)
	}
	return text.String()
}

func TestWhatIsRightIsTaken(t *testing.T) {
	for _, text := range []string{
		history("0 invoke append 1 7", "0 ok append 1 7", "1 invoke r 1 nil", "1 ok r 1 [7]"),
		// Of an append that nobody was told of, a later read may see it or not.
		history("0 invoke append 1 7", "0 info append 1 7", "1 invoke r 1 nil", "1 ok r 1 []",
			"1 invoke r 1 nil", "1 ok r 1 [7]"),
		// Nothing is said of the order of what is done at a time, nor of two keys.
		history("0 invoke append 1 7", "1 invoke append 1 8", "0 ok append 1 7", "1 ok append 1 8",
			"2 invoke r 1 nil", "2 ok r 1 [8 7]", "2 invoke r 2 nil", "2 ok r 2 []"),
		history("0 invoke append 1 7", "0 fail append 1 7", "1 invoke r 1 nil", "1 ok r 1 []"),
	} {
		if _, err := check(text); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	for what, text := range map[string]string{
		"lost":       history("0 invoke append 1 7", "0 ok append 1 7", "1 invoke r 1 nil", "1 ok r 1 []"),
		"doubled":    history("0 invoke append 1 7", "0 ok append 1 7", "1 invoke r 1 nil", "1 ok r 1 [7 7]"),
		"from ahead": history("1 invoke r 1 nil", "1 ok r 1 [7]", "0 invoke append 1 7", "0 ok append 1 7"),
		"turned": history("0 invoke append 1 7", "0 ok append 1 7", "0 invoke append 1 8", "0 ok append 1 8",
			"1 invoke r 1 nil", "1 ok r 1 [8 7]"),
		"stale": history("0 invoke append 1 7", "1 invoke r 1 nil", "1 ok r 1 [7]", "2 invoke r 1 nil", "2 ok r 1 []",
			"0 ok append 1 7"),
		"failed, and there": history("0 invoke append 1 7", "0 fail append 1 7", "1 invoke r 1 nil", "1 ok r 1 [7]"),
		"no history":        "{:index 0}\n",
		"two at a time":     history("0 invoke r 1 nil", "0 invoke r 1 nil"),
		"empty":             history("0 invoke r 1 nil", "0 info r 1 nil"),
	} {
		if said, err := check(text); err == nil {
			t.Errorf("%s: %s", what, said)
		}
	}
}
