//go:build !linux

package proxy

import "syscall"

func childAttr() *syscall.SysProcAttr  { return &syscall.SysProcAttr{Setpgid: true} }
func deviceAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
