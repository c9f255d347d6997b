package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// saveTensors is %save FILE [NAMES].
func (k *Kernel) saveTensors(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("%save takes a file, and the names of tensors; without names it saves all that have one")
	}
	path, err := k.gonb.path(args[0])
	if err != nil {
		return "", err
	}
	a, err := k.device.alone(wire.Request{Kind: wire.KindSave, Path: path, Names: args[1:]})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("saved %s, %s, in %s", nameList(a.Tensors), amount(a.Number), args[0]), nil
}

// restoreTensors is %restore FILE [NAMES].
func (k *Kernel) restoreTensors(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("%restore takes a file that %save wrote, and the names of tensors; without names it restores all that it holds")
	}
	path, err := k.gonb.path(args[0])
	if err != nil {
		return "", err
	}
	a, err := k.device.alone(wire.Request{Kind: wire.KindRestore, Path: path, Names: args[1:]})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("restored %s from %s: the values, as leaves. What they were computed from is not there to be checked", nameList(a.Tensors), args[0]), nil
}

// nameList is the names of tensors, most of them at least.
func nameList(ts []wire.Tensor) string {
	const most = 12
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
