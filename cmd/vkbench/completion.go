package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell  string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
	Output string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Help says how to use it.
func (completionCommand) Help() string {
	return "bash: source <(vkbench completion bash)\n\nzsh: source <(vkbench completion zsh)\n\nfish: vkbench completion fish | source"
}

func (c *completionCommand) Run(s *streams, app *kong.Application) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	return o.write(func(w io.Writer) error {
		script := bashCompletion(app)
		switch c.Shell {
		case "zsh":
			script = "autoload -U +X bashcompinit && bashcompinit\n" + script
		case "fish":
			script = fishCompletion(app)
		}
		_, err := io.WriteString(w, script)
		return err
	})
}

// completed are the commands that can be completed, with their words.
func completed(app *kong.Application) []*kong.Node {
	var list []*kong.Node
	for _, n := range app.Children {
		if !n.Hidden {
			list = append(list, n)
		}
	}
	return list
}

// values are the words a flag takes, where they are known.
func values(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return strings.Split(f.Enum, ",")
}

// arguments are the words a command takes besides flags.
func arguments(n *kong.Node) []string {
	switch n.Name {
	case "run":
		return names()
	case "trace", "graph":
		return recorded()
	case "completion":
		return []string{"bash", "zsh", "fish"}
	}
	return nil
}

func flags(n *kong.Node) []*kong.Flag {
	var list []*kong.Flag
	for _, f := range n.Flags {
		if !f.Hidden {
			list = append(list, f)
		}
	}
	return list
}

func bashCompletion(app *kong.Application) string {
	var b strings.Builder
	var commands []string
	for _, n := range completed(app) {
		commands = append(commands, n.Name)
	}
	fmt.Fprintf(&b, `_vkbench() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words= values=
	COMPREPLY=()
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}
	[ "$word" = = ] && word=
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W '%s --help' -- "$word"))
		return
	fi
	case $command in
`, strings.Join(commands, " "))
	for _, n := range completed(app) {
		words := append([]string{"--help"}, arguments(n)...)
		fmt.Fprintf(&b, "\t%s)\n", n.Name)
		for _, f := range flags(n) {
			words = append(words, "--"+f.Name)
			if v := values(f); v != nil {
				fmt.Fprintf(&b, "\t\t[ \"$before\" = --%s ] && values='%s'\n", f.Name, strings.Join(v, " "))
			}
		}
		fmt.Fprintf(&b, "\t\twords='%s'\n\t\t;;\n", strings.Join(words, " "))
	}
	b.WriteString(`	esac
	if [ -n "$values" ]; then
		COMPREPLY=($(compgen -W "$values" -- "$word"))
		return
	fi
	COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}
complete -o filenames -F _vkbench vkbench
`)
	return b.String()
}

func fishCompletion(app *kong.Application) string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(strings.SplitN(s, ". ", 2)[0]) + "'"
	}
	var b strings.Builder
	for _, n := range completed(app) {
		fmt.Fprintf(&b, "complete -c vkbench -n __fish_use_subcommand -f -a %s -d %s\n", n.Name, quote(n.Help))
		on := fmt.Sprintf("complete -c vkbench -n '__fish_seen_subcommand_from %s'", n.Name)
		if a := arguments(n); a != nil {
			fmt.Fprintf(&b, "%s -a '%s'\n", on, strings.Join(a, " "))
		}
		for _, f := range flags(n) {
			short, takes := "", ""
			if f.Short != 0 {
				short = fmt.Sprintf(" -s %c", f.Short)
			}
			if v := values(f); v != nil {
				takes = fmt.Sprintf(" -x -a '%s'", strings.Join(v, " "))
			} else if !f.IsBool() {
				takes = " -r"
			}
			fmt.Fprintf(&b, "%s -l %s%s%s -d %s\n", on, f.Name, short, takes, quote(f.Help))
		}
	}
	return b.String()
}
