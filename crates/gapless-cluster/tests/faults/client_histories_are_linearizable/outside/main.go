// Checks histories of clients (Jepsen's EDN, Elle's list-append, one operation a line) with Porcupine, a checker of
// linearizability that is not ours.
//
//	go run . history.three.edn history.witness.edn
package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const timeLimit = 5 * time.Minute

var line = regexp.MustCompile(
	`^\{:index \d+, :type :(\w+), :f :txn, :value \[\[:(append|r) (\d+) (\S.*)\]\], :process (\d+), :time (\d+)\}$`)

// input is what a client asks for: to append a value to the list of a key, or to read the list.
type input struct {
	key, value string
	isRead     bool
}

// lists is the model: of each key by itself, a list is the values in order, a space behind each.
var lists = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(input).key
			parts[key] = append(parts[key], operation)
		}
		var all [][]porcupine.Operation
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() interface{} { return "" },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		asked := in.(input)
		if asked.isRead {
			return state == out, state
		}
		return true, state.(string) + asked.value + " "
	},
}

// read gives the operations of a history. An append whose end nobody was told may take effect at any time behind its
// beginning. It is left out where nobody has read its value, as it can always stand behind everything else: each one
// that is left in may stand anywhere, which doubles the work. What failed never takes effect, and a read that nobody
// was told says nothing.
func read(text string) ([]porcupine.Operation, error) {
	var operations, unknown []porcupine.Operation
	open := map[string]porcupine.Operation{}
	seen := map[string]bool{}
	for number, words := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		parts := line.FindStringSubmatch(words)
		if parts == nil {
			return nil, fmt.Errorf("line %d is no operation: %s", number+1, words)
		}
		kind, isRead, key, value, process := parts[1], parts[2] == "r", parts[3], parts[4], parts[5]
		at, err := strconv.ParseInt(parts[6], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		begun, isOpen := open[process]
		if isOpen == (kind == "invoke") {
			return nil, fmt.Errorf("line %d: process %s begins within an operation, or ends none", number+1, process)
		}
		if kind == "invoke" {
			client, err := strconv.Atoi(process)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
			asked := input{key: key, isRead: isRead}
			if !isRead {
				asked.value = value
			}
			open[process] = porcupine.Operation{ClientId: client, Input: asked, Call: at, Return: math.MaxInt64}
			continue
		}
		delete(open, process)
		switch kind {
		case "ok":
			begun.Return = at
			if isRead {
				begun.Output = list(value)
				for _, value := range strings.Fields(list(value)) {
					seen[value] = true
				}
			}
			operations = append(operations, begun)
		case "info":
			unknown = append(unknown, begun)
		case "fail":
		default:
			return nil, fmt.Errorf("line %d: an operation is %s", number+1, kind)
		}
	}
	for _, begun := range open {
		unknown = append(unknown, begun)
	}
	for _, begun := range unknown {
		if seen[begun.Input.(input).value] {
			operations = append(operations, begun)
		}
	}
	return operations, nil
}

// list is how the model holds what a client has read, such as [1 2].
func list(value string) string {
	values := strings.Trim(value, "[]")
	if values == "" {
		return ""
	}
	return values + " "
}

func check(text string) (string, error) {
	operations, err := read(text)
	if err != nil {
		return "", err
	}
	if len(operations) == 0 {
		return "", fmt.Errorf("there is no operation in it")
	}
	switch porcupine.CheckOperationsTimeout(lists, operations, timeLimit) {
	case porcupine.Ok:
		return fmt.Sprintf("linearizable: %d operations", len(operations)), nil
	case porcupine.Illegal:
		return "", fmt.Errorf("not linearizable: %d operations", len(operations))
	default:
		return "", fmt.Errorf("not decided within %v", timeLimit)
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . HISTORY.edn...")
		os.Exit(2)
	}
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		said, err := check(string(text))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %s\n", path, said)
	}
}
