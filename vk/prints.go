package vk

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"vkcompute/vk/internal/abi"
)

// ShaderPrints says what becomes of what shaders print: debugPrintfEXT of GLSL's
// GL_EXT_debug_printf and printf of HLSL, the instruction set NonSemantic.DebugPrintf in
// SPIR-V.
type ShaderPrints int

const (
	// PrintsIgnored is the default: such shaders run and print nothing.
	PrintsIgnored ShaderPrints = iota
	// PrintsLogged has the Khronos validation layer rewrite shaders, so that what they print
	// reaches Options.Logger, at level info as "shader printed", and Device.Prints. It wants
	// the layer, else ErrNoValidation, and makes everything slow. Lines arrive when the work
	// that printed them is waited for; those of one submission that need more than 256 KiB
	// are cut short, with a warning.
	PrintsLogged
)

// Print is a line that an invocation of a shader printed.
type Print struct {
	Shader string // the name of its pipeline; empty where the layer does not tell
	Text   string
	// Invocation is gl_GlobalInvocationID; Known is false where the layer does not tell,
	// which those before 2024 do not.
	Invocation [3]uint32
	Known      bool
}

// keptPrints bounds what is held for a caller who never asks.
const keptPrints = 4096

// Prints returns what shaders printed since the last call, with Options.Prints. Of more
// than a few thousand lines the first are kept; the Logger gets all.
func (d *Device) Prints() []Print {
	d.in.drain()
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	list := d.in.printed
	d.in.printed = nil
	return list
}

// wanted says for an error what the layer was wanted for.
func wanted(v Validation) string {
	if v == ValidationOff {
		return "what shaders print"
	}
	return "validation"
}

// warnUnprintable tells the logger of a device that has not been promised to take shaders
// that print: the instruction set came with an extension, and with Vulkan 1.3.
func (i *DeviceInfo) warnUnprintable(logger *slog.Logger, listed bool) {
	if !listed && uint32(i.API)&0x1fffffff < printing {
		logger.Warn("vk: the driver may refuse shaders that print", "device", i.Name, "wanted", nonSemanticInfo+" or Vulkan 1.3", "found", i.API.String())
	}
}

// takePrints takes out of messages what shaders printed, and what the layer says of the
// changes that it makes for that, which is nobody's fault.
func (in *instance) takePrints(raw []abi.Message) []abi.Message {
	if in.prints == PrintsIgnored {
		return raw
	}
	var list []Print
	rest := raw[:0]
	for _, r := range raw {
		switch {
		case strings.Contains(r.Name, "DEBUG-PRINTF"):
			if r.Severity < abi.SeverityWarning {
				list = append(list, parsePrint(r.Object, r.Text))
			} else {
				in.logger.Warn("vulkan: of what shaders print", "message", r.Text)
			}
		case r.Name == "VALIDATION-SETTINGS" || r.Name == "WARNING-Setting-Limit-Adjusted":
			in.logger.Debug("vulkan: for what shaders print", "message", r.Text)
		default:
			rest = append(rest, r)
		}
	}
	in.mu.Lock()
	kept := min(len(list), keptPrints-len(in.printed))
	in.printed = append(in.printed, list[:kept]...)
	in.mu.Unlock()
	for _, p := range list {
		attrs := []slog.Attr{slog.String("shader", p.Shader), slog.String("message", p.Text)}
		if p.Known {
			attrs = append(attrs, slog.Any("invocation", p.Invocation))
		}
		in.logger.LogAttrs(context.Background(), slog.LevelInfo, "shader printed", attrs...)
	}
	return rest
}

var invocation = regexp.MustCompile(`^Stage = .*Global invocation ID \(x, y, z\) = \((\d+), (\d+), (\d+)\)`)

// parsePrint finds the text within a message of the layer. Later layers write
//
//	vkQueueSubmit(): pSubmits[0] DebugPrintf:
//	TEXT
//	Stage = Compute.  Global invocation ID (x, y, z) = (1, 0, 0)
//	…
//
// and earlier ones
//
//	Validation Information: [ … ] Object 0: … | MessageID = 0x92394c89 | TEXT
//
// A message of neither kind is the text.
func parsePrint(shader, message string) Print {
	p := Print{Shader: shader, Text: message}
	if _, text, ok := strings.Cut(message, "DebugPrintf:\n"); ok {
		p.Text = text
		// The text may have lines of any kind, so the last one counts.
		if at := strings.LastIndex(text, "\nStage = "); at >= 0 {
			p.Text = text[:at]
			if found := invocation.FindStringSubmatch(text[at+1:]); found != nil {
				p.Known = true
				for i := range p.Invocation {
					n, err := strconv.ParseUint(found[1+i], 10, 32)
					p.Invocation[i], p.Known = uint32(n), p.Known && err == nil
				}
			}
		}
	} else if _, after, ok := strings.Cut(message, "| MessageID = "); ok {
		if _, text, ok := strings.Cut(after, " | "); ok {
			p.Text = text
		}
	}
	p.Text = strings.TrimRight(p.Text, "\r\n")
	return p
}
