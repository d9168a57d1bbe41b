# Short names for what the scripts do; none of it needs make.

.PHONY: test soak bench generate

test: ## the whole suite, a few minutes
	scripts/test

soak: ## long forms of the tests and a while of each fuzzer, hours
	scripts/test --long

bench: ## what a launch costs
	scripts/bench

generate: ## SPIR-V from GLSL; needs glslc and spirv-tools
	go generate ./...
