package proxy

import "syscall"

// childAttr puts a child into its own group, so that a signal to our group does not reach it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// deviceAttr has no death signal: the device process ends by its lifeline, and cleans up first.
func deviceAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
