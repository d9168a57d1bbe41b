package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strings"
	"time"

	"vkcompute/cmd/vkbench/internal/doctor"
)

type doctorCommand struct {
	Root   string `help:"Examine another file system, such as that of a container, without loading its drivers." placeholder:"DIR" type:"existingdir"`
	Format string `enum:"table,json" default:"table" help:"table or json."`
	Output string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

func (c *doctorCommand) Run(s *streams) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	home, _ := os.UserHomeDir()
	groups, _ := os.Getgroups()
	examined := doctor.System{Root: "/", Getenv: os.Getenv, Home: home, UID: os.Geteuid(), GIDs: append(groups, os.Getegid()), User: "this user", Machine: runtime.GOARCH, Probe: probeDriver}
	if u, err := user.Current(); err == nil {
		examined.User = u.Username
	}
	if c.Root != "" {
		examined.Root, examined.Probe = c.Root, nil
		// The variables of this session say nothing about another system.
		examined.Getenv, examined.Home = func(string) string { return "" }, "/root"
	}
	d := doctor.Examine(examined)
	err := o.write(func(w io.Writer) error {
		if c.Format == "json" {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", " ")
			return e.Encode(d)
		}
		return d.Write(w)
	})
	if err == nil && len(d.Problems()) > 0 {
		return errReported
	}
	return err
}

// probeDriver lists the devices of a driver in a process of its own.
func probeDriver(manifest string) ([]string, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(path, "devices", "--format", "json", "--driver", manifest)
	c.Args[0] = os.Args[0] // by which a test's binary knows what it is
	// A selector would make a driver without that device look broken.
	c.Env = append(os.Environ(), "VKCOMPUTE_DEVICE=")
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		return nil, err
	}
	slow := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
	err = c.Wait()
	if !slow.Stop() {
		return nil, errors.New("it did not answer within 20 seconds")
	}
	var list deviceReport
	if json.Unmarshal(out.Bytes(), &list) == nil {
		var names []string
		for _, d := range list.Devices {
			name := fmt.Sprintf("%s (%s)", d.Name, d.Type)
			if d.Refused != "" {
				name += ", refused: " + d.Refused
			}
			names = append(names, name)
		}
		return names, nil
	}
	said := strings.TrimSpace(errOut.String())
	if strings.Contains(said, "no Vulkan device") || strings.Contains(said, "ERROR_INCOMPATIBLE_DRIVER") {
		return nil, nil
	}
	if err != nil && !strings.HasPrefix(said, "vkbench:") {
		return nil, fmt.Errorf("it ended the process: %w", err)
	}
	return nil, errors.New(strings.TrimPrefix(said, "vkbench: "))
}
