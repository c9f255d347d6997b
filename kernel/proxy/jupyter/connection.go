package jupyter

import (
	"encoding/json"
	"fmt"
	"os"
)

// Connection is the connection file that Jupyter writes for a kernel.
type Connection struct {
	Transport  string `json:"transport"`
	IP         string `json:"ip"`
	Shell      int    `json:"shell_port"`
	Control    int    `json:"control_port"`
	Stdin      int    `json:"stdin_port"`
	IOPub      int    `json:"iopub_port"`
	Heartbeat  int    `json:"hb_port"`
	Key        string `json:"key"`
	Scheme     string `json:"signature_scheme"`
	KernelName string `json:"kernel_name,omitempty"`
}

// ReadConnection reads a connection file and refuses what this kernel cannot serve.
func ReadConnection(path string) (Connection, error) {
	var c Connection
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("connection file: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("connection file %s: %w", path, err)
	}
	if c.Transport != "tcp" && c.Transport != "ipc" {
		return c, fmt.Errorf("connection file %s: transport %q, want tcp or ipc", path, c.Transport)
	}
	if c.Scheme != "" && c.Scheme != "hmac-sha256" {
		return c, fmt.Errorf("connection file %s: signature scheme %q, want hmac-sha256", path, c.Scheme)
	}
	return c, nil
}

// Endpoint is the network and address of one of the ports, as package net wants them.
func (c Connection) Endpoint(port int) (network, address string) {
	if c.Transport == "ipc" {
		return "unix", fmt.Sprintf("%s-%d", c.IP, port)
	}
	return "tcp", fmt.Sprintf("%s:%d", c.IP, port)
}
